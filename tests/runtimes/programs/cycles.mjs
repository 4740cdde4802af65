/**
 * The load of a program that runs for months: it acquires and releases, and its memory must not
 * grow.
 */

import { memory, timersLeft } from "../watch.mjs";

/** The number of concurrent cycles. */
const CONCURRENCY = 64;

/** A signal that outlives all calls that use it. */
const forever = new AbortController();

/** Runs `count` cycles, and returns the use of memory and timers afterwards. */
export async function cycle(locks, name, count) {
  const lanes = Array.from({ length: CONCURRENCY }, (_, lane) => locks.lock(`${name}:${lane}`));
  await Promise.all(lanes.map(async (lock, lane) => {
    for (let i = lane; i < count; i += CONCURRENCY) await holdOnce(lock, Math.floor(i / CONCURRENCY));
  }));
  return inUse(count);
}

/**
 * Makes `count` holds, `together` at a time: all of them are held before the first is released.
 * Returns the use of memory and timers afterwards.
 */
export async function crowd(locks, name, count, together) {
  const all = Array.from({ length: together }, (_, lane) => locks.lock(`${name}:${lane}`));
  for (let done = 0; done < count; done += together) {
    const leases = await Promise.all(all.map((lock) => lock.acquire()));
    if (leases.some((lease) => lease.remaining() === 0)) throw new Error("a lease is lost");
    const ends = await Promise.all(leases.map((lease) => lease.release()));
    if (ends.some((end) => end !== "released")) throw new Error("a hold was lost");
    // The module remembers the largest number of holds: at most as many as are held at a time.
    await collect();
  }
  return inUse(count);
}

/** Returns the use of memory and timers after garbage collection. */
export async function inUse(count) {
  for (let i = 0; i < 5; i += 1) await collect();
  const wasm = memory();
  await collect();
  const heap = globalThis.process?.memoryUsage?.().heapUsed ?? null;
  return { cycles: count, wasm, heap, timers: timersLeft() };
}

/** Collects garbage; the package frees its part of an object one turn later. */
async function collect() {
  globalThis.gc?.();
  await new Promise((next) => setTimeout(next));
}

/** Makes one hold, in one of several ways. */
async function holdOnce(lock, number) {
  if (number % 20 === 3) return await lock.run({ signal: forever.signal }, (lease) => lease.token);
  const lease = await lock.acquire({ signal: forever.signal });
  if (number % 4 === 1) lease.signal.addEventListener("abort", () => {});
  if (number % 10 === 5) await lease.renew();
  if (number % 100 === 7) {
    const next = lock.acquire();
    await lease.release();
    return (await next).release();
  }
  if (number % 100 === 11) {
    const leaving = new AbortController();
    const left = lock.acquire({ signal: leaving.signal }).catch((error) => error);
    await lock.inspect();
    leaving.abort();
    await left;
  }
  await lease.release();
}
