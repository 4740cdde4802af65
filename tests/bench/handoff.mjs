// Measures the time from the call of a release until the next holder runs.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { randomly } from "./random.mjs";

/**
 * The range of the time of a hold: longer than a client needs to start waiting, and random, so that
 * holds are not in step with the intervals of polling clients.
 */
const HOLD_MS = [20, 40];
/** The time after which all clients wait. */
const SETTLE_MS = 400;
const WARM_UP = 2;
const PINGS = 100;

/**
 * Has `waiters` clients wait while another one holds. A client that has released waits again once
 * the next one runs, so that no client acquires the lock that it has just released. Ends after
 * `handoffs` hand-offs, or after the first one past `seconds`.
 */
export async function handoff(subject, { waiters, apart, handoffs, seconds }) {
  const { wire, client } = await subject();
  const name = `bench:${randomUUID()}`;
  const shared = client();
  const locks = Array.from({ length: waiters + 1 }, () => (apart ? client() : shared).lock(name));
  const roundTrips = await pings(wire);

  const arrivals = queue();
  const wait = async (lock) => arrivals.put({ lock, held: await lock.acquire(), at: performance.now() });
  wait(locks[0]);
  let turn = await arrivals.take();
  locks.slice(1).forEach(wait);
  await sleep(SETTLE_MS);

  const ms = [];
  const random = randomly(waiters);
  let before;
  let start;
  for (let done = 0; done < WARM_UP + handoffs; done += 1) {
    if (done === WARM_UP) [before, start] = [wire.requests(), performance.now()];
    await sleep(random(...HOLD_MS));
    const released = performance.now();
    const release = turn.lock.release(turn.held);
    const next = await arrivals.take();
    if (!(await release)) throw new Error("the lock was lost");
    if (done >= WARM_UP) ms.push(next.at - released);
    wait(turn.lock);
    turn = next;
    if (ms.length > 0 && performance.now() - start > seconds * 1_000) break;
  }
  const requests = wire.requests() - before;
  roundTrips.push(...(await pings(wire)));
  return { ms, requests, roundTrips };
}

/** Measures the round-trip time of the smallest request while the process is idle. */
async function pings({ ping }) {
  for (let i = 0; i < PINGS; i += 1) await ping();
  const ms = [];
  for (let i = 0; i < PINGS; i += 1) {
    const start = performance.now();
    await ping();
    ms.push(performance.now() - start);
  }
  return ms;
}

/**
 * A queue of holders: `put` returns at once, and `take` waits for the next one. It fails if it has
 * two entries, since a lock would then have two holders.
 */
function queue() {
  const there = [];
  let taker;
  return {
    put(one) {
      if (taker) taker(one);
      else there.push(one);
      taker = undefined;
    },
    async take() {
      const one = there.shift() ?? (await new Promise((resolve) => (taker = resolve)));
      if (there.length > 0) throw new Error("two hold the lock");
      return one;
    },
  };
}
