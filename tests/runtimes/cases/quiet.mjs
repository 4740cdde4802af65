/** Without calls the package does nothing. */

import { same } from "../check.mjs";
import { advanceTime, calledAtLoad, changedPrototypes, timersLeft, unhandled } from "../watch.mjs";

/**
 * Every timer of the package ends within a few minutes. They pass here in steps of a quarter of a
 * second.
 */
const [STEPS, STEP_MS] = [1_200, 250];

export const quiet = {
  // S42.
  "importing the package only loads its module"({ loads }) {
    same(calledAtLoad(), loads);
  },

  // S86.
  async "no timer of the package remains"() {
    // The steps are so short that a lease which is still renewed does not end in them.
    for (let step = 0; step < STEPS && timersLeft() > 0; step += 1) {
      advanceTime(STEP_MS);
      await new Promise((next) => setTimeout(next, 5));
    }
    same(timersLeft(), 0, "timers");
  },

  "shared prototypes are unchanged"() {
    same(changedPrototypes(), []);
  },

  async "no promise rejection is unhandled"() {
    await new Promise((next) => setTimeout(next));
    same(unhandled, []);
  },
};
