/** Each side wakes the other side's waiters over a stream. */

import assert from "node:assert/strict";

import { until } from "../../runtimes/check.mjs";
import { ENDLESS } from "./exclusive.mjs";
import { ms } from "./peer.mjs";

const LONG = { leaseMs: ENDLESS, waitMs: ENDLESS, maxRequests: 10_000 };

export const woken = {
  // S87.
  async "an unlock of Java wakes our waiter, which sends one request"({ java, client, make, command, name }) {
    await java.call("lock", ms(ENDLESS));
    const own = client();
    const acquired = make(own).acquire(LONG);
    const listeners = async () => Number((await command("PUBSUB", "NUMSUB", `redisson_lock__channel:{${name}}`))[1]);
    // The waiter was refused, has subscribed, and was refused again.
    await until(async () => own.seen.answers >= 3 && (await listeners()) === 1, "we listen");
    const before = own.seen.answers;
    await java.call("unlock");
    const lease = await acquired;
    // The retry, and perhaps a request that was on its way.
    assert.ok(own.seen.answers <= before + 2, `${own.seen.answers - before} requests`);
    assert.equal(await lease.release(), "released");
  },

  async "what ours tell each other of a grant is nothing to Java"({ java, client, make, ours }) {
    const lease = await ours.acquire(LONG);
    const waiting = [1, 2, 3].map(() => make(client()).acquire(LONG));
    const locked = java.call("lock", ms(ENDLESS));
    await java.waits();
    const given = waiting.map(async (acquired) => (await acquired).release());
    given.push(locked.then(() => java.call("unlock")));
    await lease.release();
    await Promise.all(given);
    assert.equal(await (await ours.tryAcquire()).release(), "released");
  },
};
