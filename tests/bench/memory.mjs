// What a process keeps for each lease that is held, and for each who waits.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { pair } from "./subjects.mjs";

/** So many requests at a time, so that it is not connections that are measured. */
const TOGETHER = 50;
/**
 * Between two tries of those who only poll: thousands at their own pace are more than a gateway
 * bears.
 */
const CALM_MS = 60_000;
const SETTLE_MS = 300;
/**
 * How often what is under way is looked at, and until when those who begin to wait do so in small
 * groups.
 */
const LOOK_MS = 2;
const MOST_MS = 30_000;

/**
 * Bytes for each of so many, all of one client: `held` of different locks, or waiting for the same
 * one.
 */
export async function memory(subject, { count, what }) {
  const { wire, client } = await subject();
  const made = client();
  const name = `bench:${randomUUID()}`;
  const free = Array.from({ length: TOGETHER }, (_, i) => made.lock(`${name}:warm:${i}`));
  for (let i = 0; i < 4; i += 1) await Promise.all(free.map(pair));
  // A list of its own length, so that the list is not measured.
  const kept = Array.from({ length: count }, () => null);
  const before = used();
  await (what === "held" ? hold : wait)(made, name, kept, wire);
  return { bytes: (used() - before) / count, kept: kept.length };
}

async function hold(client, name, kept) {
  for (let i = 0; i < kept.length; i += TOGETHER) {
    const some = kept.slice(i, i + TOGETHER).map(async (_, place) => {
      kept[i + place] = await client.lock(`${name}:${i + place}`).tryAcquire();
    });
    await Promise.all(some);
  }
  if (kept.includes(null)) throw new Error("a lock was not free");
}

async function wait(client, name, kept, { open }) {
  await client.lock(name).tryAcquire();
  const end = performance.now() + MOST_MS;
  for (let i = 0; i < kept.length; i += TOGETHER) {
    for (let place = i; place < i + TOGETHER; place += 1) kept[place] = client.lock(name).acquire(CALM_MS);
    do await sleep(LOOK_MS);
    while (open() > TOGETHER && performance.now() < end);
  }
  await sleep(SETTLE_MS);
}

/** What is in use of JavaScript's heap and beside it, where WebAssembly's memory is. */
function used() {
  for (let i = 0; i < 3; i += 1) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
