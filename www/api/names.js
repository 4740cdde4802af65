/**
 * Returns the prefix of the names of one run. It ends with a character that no run's name contains,
 * so no prefix is the beginning of another.
 */
export function pagePrefix(run) {
  return `demo:page:${run}:`;
}

/**
 * Returns the name that all contenders of a run acquire. Each run has its own, so visitors do not
 * disturb each other.
 */
export function pageKey(run) {
  return `${pagePrefix(run)}thing`;
}
