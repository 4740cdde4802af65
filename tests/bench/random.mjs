// Random numbers that are the same in each run.

/** Returns a generator of whole numbers from `low` to `high` (Park and Miller's). */
export function randomly(seed) {
  let state = seed + 1;
  return (low, high) => {
    state = (state * 48_271) % 2_147_483_647;
    return low + (state / 2_147_483_647) * (high - low);
  };
}
