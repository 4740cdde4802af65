// Measures the memory of a process for each held lease, and for each waiter.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { pair } from "./subjects.mjs";

/** The number of concurrent requests: few, so that the memory of connections does not count. */
const TOGETHER = 50;
/**
 * The interval of libraries that poll: thousands of waiters with their default intervals would
 * overload the gateway.
 */
const POLL_MS = 60_000;
const SETTLE_MS = 300;
/** The interval at which pending requests are counted. */
const CHECK_MS = 2;
/** The time after which further waiters start without regard to pending requests. */
const RAMP_UP_MS = 30_000;

/**
 * Returns the bytes per lease or waiter, for `count` of them in one client: leases of different
 * locks if `what` is `held`, else waiters for one lock.
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
  const end = performance.now() + RAMP_UP_MS;
  for (let i = 0; i < kept.length; i += TOGETHER) {
    for (let place = i; place < i + TOGETHER; place += 1) kept[place] = client.lock(name).acquire(POLL_MS);
    do await sleep(CHECK_MS);
    while (open() > TOGETHER && performance.now() < end);
  }
  await sleep(SETTLE_MS);
}

/** The bytes in use in JavaScript's heap and outside of it, where WebAssembly's memory is. */
function used() {
  for (let i = 0; i < 3; i += 1) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
