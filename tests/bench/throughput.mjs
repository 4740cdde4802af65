// Measures pairs of acquire and release of uncontended locks.
import { randomUUID } from "node:crypto";

import { pair } from "./subjects.mjs";

/** Returns the pairs per second of `tasks` tasks of one client, each with a lock of its own. */
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
  // Warms up: engines compile hot code, and clients open connections.
  await run(seconds * 1_000);
  return { pairs: await run(seconds * 1_000) };
}
