// Chance that is the same in each run.

/** Numbers from `low` to `high`, by the seed (Park and Miller's generator). */
export function randomly(seed) {
  let state = seed + 1;
  return (low, high) => {
    state = (state * 48_271) % 2_147_483_647;
    return low + (state / 2_147_483_647) * (high - low);
  };
}
