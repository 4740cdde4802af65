// Measures the processor time that a library uses in its process.
import { randomUUID } from "node:crypto";

import { pair } from "./subjects.mjs";

/**
 * Returns the microseconds of processor time per pair, and those of the same requests without the
 * library. Both are measured alternately.
 */
export async function cpu(subject, { rounds, pairs }) {
  const { wire, client } = await subject();
  const lock = client().lock(`bench:${randomUUID()}`);
  const whole = () => pair(lock);
  const time = async (work) => {
    globalThis.gc();
    const before = process.cpuUsage();
    for (let i = 0; i < pairs; i += 1) await work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / pairs;
  };
  await time(whole);
  // Recorded after the warm-up, since Redis then knows the scripts.
  const bare = await wire.recorded(whole);
  await time(bare);
  const figures = { whole: [], bare: [], library: [] };
  for (let i = 0; i < rounds; i += 1) {
    const [one, other] = [await time(whole), await time(bare)];
    figures.whole.push(one);
    figures.bare.push(other);
    figures.library.push(one - other);
  }
  return figures;
}
