/** The writes of a run, by which it is judged. Nothing here draws. */

/**
 * Whether an accepted write has replaced one with a newer token.
 *
 * Each write has a `token`, and the times `from` at which it was sent and `at` at which it was
 * answered. The answers to two clients arrive in any order, so a write counts as the later one only
 * if it was sent after the answer to the other. An outage, with `from` and `to`, empties the store,
 * so a write after it replaces none before it.
 */
export function hasOverwritten(writes, outages) {
  const isOneStore = (newer, older) => outages.every(({ from, to }) => (to ?? Infinity) < newer.from || from > older.at);
  const isOverwritten = (newer, older) => newer.token > older.token && newer.at < older.from && isOneStore(newer, older);
  return writes.some((older) => writes.some((newer) => isOverwritten(newer, older)));
}
