/** The two sides of a count-down latch: contenders that count down, and contenders that wait. */

import { contendersOf, COUNTS, WAIT_MS } from "../kinds.js";
import { command, KEY_LIFE_SECONDS } from "./redis.js";
import { pause } from "./event-stream.js";

const CONTENDERS = contendersOf("latch").length;

/** Works for its time, and counts down by one. */
export async function countDown(contender) {
  const { events, checker, holdMs } = contender;
  const latch = await closed(contender);
  events.send("held", { as: "shared" });
  await pause(holdMs, [events.disconnected]);
  events.disconnected.throwIfAborted();
  events.send("releasing");
  await checker.count();
  events.send("counted", { left: await latch.countDown() });
  events.send("released");
}

/** Waits until the latch is open. */
export async function passLatch(contender) {
  const { events, checker, holdMs } = contender;
  const latch = await closed(contender);
  events.send("waiting");
  await latch.wait({ waitMs: WAIT_MS, signal: events.disconnected });
  events.send("held", { as: "alone" });
  await checker.pass(COUNTS);
  await pause(holdMs, [events.disconnected]);
  events.send("releasing");
  events.send("released");
}

/**
 * Returns the closed latch once every contender has joined: a later `trySetCount` would close an
 * open latch again.
 */
async function closed({ env, locks, key, events, checker }) {
  const latch = locks.countDownLatch(key);
  await latch.trySetCount(COUNTS);
  // Every key of the demo expires, also if the latch is never opened.
  await command(env, ["EXPIRE", key, KEY_LIFE_SECONDS]);
  await checker.join();
  await checker.waitFor("joined", CONTENDERS, events.disconnected);
  return latch;
}
