/**
 * How the names of one run begin. It ends with what no run's name has in it, so that no run's names
 * begin as another's do.
 */
export function pagePrefix(run) {
  return `demo:page:${run}:`;
}

/**
 * What all contenders of one run want. Runs do not meet: two visitors do not disturb each other.
 */
export function pageKey(run) {
  return `${pagePrefix(run)}thing`;
}
