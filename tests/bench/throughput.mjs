// Pairs of acquire and release, of uncontended locks.
import { randomUUID } from "node:crypto";

import { pair } from "./subjects.mjs";

/** Pairs per second with so many tasks of one client, each with a lock of its own. */
export async function throughput(subject, { tasks, seconds }) {
  const { client } = await subject();
  const made = client();
  const locks = Array.from({ length: tasks }, () => made.lock(`bench:${randomUUID()}`));
  const whileNot = (end) => async (lock) => {
    let pairs = 0;
    while (performance.now() < end) {
      await pair(lock);
      pairs += 1;
    }
    return pairs;
  };
  const run = async (ms) => {
    const start = performance.now();
    const pairs = await Promise.all(locks.map(whileNot(start + ms)));
    const sum = pairs.reduce((a, b) => a + b);
    return (sum / (performance.now() - start)) * 1_000;
  };
  // Engines compile what runs often, and connections are opened.
  await run(seconds * 1_000);
  return { pairs: await run(seconds * 1_000) };
}
