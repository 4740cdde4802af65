/** What the package does when nobody asks it for anything: nothing. */

import { same, until } from "../check.mjs";
import { calledAtLoad, changedPrototypes, timersLeft, unhandled } from "../watch.mjs";

export const quiet = {
  // S42.
  "importing does nothing but load"({ loads }) {
    same(calledAtLoad(), loads);
  },

  // S86.
  async "no timer is left"() {
    await until(() => timersLeft() === 0, "the last timer ends");
  },

  "shared prototypes are as they were"() {
    same(changedPrototypes(), []);
  },

  async "no rejection was left to nobody"() {
    await new Promise((next) => setTimeout(next));
    same(unhandled, []);
  },
};
