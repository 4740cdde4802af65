/** The two sides of a count-down latch: those who count, and those who wait before the gate. */

import { castOf, COUNTS, WAIT_MS } from "../kinds.js";
import { command, KEY_LIFE_SECONDS } from "./redis.js";
import { pause } from "./story.js";

const CROWD = castOf("latch").length;

/** Works for its time, and counts down by one. */
export async function countDown(contender) {
  const { story, witness, holdMs } = contender;
  const latch = await closed(contender);
  story.tell("held", { as: "shared" });
  await pause(holdMs, [story.left]);
  story.left.throwIfAborted();
  story.tell("releasing");
  await witness.count();
  story.tell("counted", { left: await latch.countDown() });
  story.tell("released");
}

/** Waits until the gate is open, and goes through. */
export async function goThrough(contender) {
  const { story, witness, holdMs } = contender;
  const latch = await closed(contender);
  story.tell("waiting");
  await latch.wait({ waitMs: WAIT_MS, signal: story.left });
  story.tell("held", { as: "alone" });
  await witness.pass(COUNTS);
  await pause(holdMs, [story.left]);
  story.tell("releasing");
  story.tell("released");
}

/** The latch, closed, and everybody there: whoever came later would close it once more. */
async function closed({ env, locks, key, story, witness }) {
  const latch = locks.countDownLatch(key);
  await latch.trySetCount(COUNTS);
  // All that the demo leaves goes away, also when nobody opens it.
  await command(env, ["EXPIRE", key, KEY_LIFE_SECONDS]);
  await witness.join();
  await witness.sees("joined", CROWD, story.left);
  return latch;
}
