/** The two sides of a count-down latch: contenders that count down, and contenders that wait. */

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

/** Waits until the latch is open. */
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

/**
 * Returns the closed latch once every contender has joined: a later `trySetCount` would close an
 * open latch again.
 */
async function closed({ env, locks, key, story, witness }) {
  const latch = locks.countDownLatch(key);
  await latch.trySetCount(COUNTS);
  // Every key of the demo expires, also if the latch is never opened.
  await command(env, ["EXPIRE", key, KEY_LIFE_SECONDS]);
  await witness.join();
  await witness.sees("joined", CROWD, story.left);
  return latch;
}
