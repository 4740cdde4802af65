/** The end of a wait by a signal, which leaves nothing behind. */

import { ok, rejection, same, until } from "../check.mjs";

export const abort = {
  async "an already aborted signal rejects the call without a request"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    for (const reason of [new Error("mine"), "a text", 0, null]) {
      const signal = AbortSignal.abort(reason);
      const calls = [
        () => lock.acquire({ signal }),
        () => lock.tryAcquire({ signal }),
        () => lock.acquire({ waitMs: "until-aborted", signal }),
        () => lock.run({ signal }, () => ok(false, "the work does not start")),
      ];
      for (const call of calls) ok((await rejection(call())) === reason, `rejects with the reason ${reason}`);
    }
    same((await rejection(lock.acquire({ signal: AbortSignal.abort() }))).name, "AbortError");
    same(sent.length, 0, "requests");
  },

  // S59.
  async "an abort rejects a waiting acquire with the signal's reason and leaves no hold"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    const holder = await world.client().locks.lock(lock.name).acquire();
    for (const waitMs of ["until-aborted", 60_000]) {
      const controller = new AbortController();
      const requests = sent.length;
      const reason = new Error("mine");
      const waiting = rejection(lock.acquire({ waitMs, signal: controller.signal }));
      await until(() => sent.length > requests + 1, "the waiter sends two requests");
      controller.abort(reason);
      ok((await waiting) === reason, "the reason itself");
    }
    await holder.release();
    same((await lock.inspect()).locked, false);
    const lease = await lock.tryAcquire();
    ok(lease !== null, "the next acquire succeeds");
    await lease.release();
  },

  // S40, S81.
  async "an abort releases a grant whose response has not arrived"(world) {
    const lock = world.lock();
    let onResponse;
    const responseArrived = new Promise((resolve) => (onResponse = resolve));
    let resume;
    const aborted = new Promise((resolve) => (resume = resolve));
    const delayed = async (input, init) => {
      const response = await fetch(input, { ...init, signal: null });
      onResponse();
      await aborted;
      return response;
    };
    await lock.inspect();
    const controller = new AbortController();
    const { locks } = world.client({ fetch: delayed });
    const waiting = rejection(locks.lock(lock.name).acquire({ signal: controller.signal }));
    await responseArrived;
    await until(async () => (await lock.inspect()).locked, "the grant without a known result");
    controller.abort("enough");
    resume();
    same(await waiting, "enough");
    same((await lock.inspect()).locked, false);
  },

  // S81.
  async "an abort after the grant does not affect the lease"(world) {
    const lock = world.lock();
    const controller = new AbortController();
    const lease = await lock.acquire({ signal: controller.signal });
    controller.abort();
    same([lease.signal.aborted, await lease.isHeld(), await lease.release()], [false, true, "released"]);
  },

  async "one signal aborts every waiting acquire that uses it"(world) {
    const lock = world.lock();
    const holder = await lock.acquire();
    const controller = new AbortController();
    const { locks, sent } = world.client();
    const waits = Array.from({ length: 4 }, () =>
      rejection(locks.lock(lock.name).acquire({ waitMs: "until-aborted", signal: controller.signal })),
    );
    await until(() => commandsOf(sent) >= 4, "each acquire sends a command");
    controller.abort("all");
    same(await Promise.all(waits), Array(4).fill("all"));
    await holder.release();
    same((await lock.inspect()).locked, false);
  },

  async "the client removes its listeners from the caller's signal"(world) {
    const lock = world.lock();
    const { signal } = new AbortController();
    const listeners = new Set();
    for (const [name, change] of [["addEventListener", "add"], ["removeEventListener", "delete"]]) {
      const original = signal[name].bind(signal);
      signal[name] = (kind, listener) => {
        listeners[change](listener);
        original(kind, listener);
      };
    }
    const lease = await lock.acquire({ signal });
    same(await lock.tryAcquire({ signal }), null);
    await rejection(lock.acquire({ waitMs: 1, signal }));
    await lease.release();
    same(await lock.run({ signal }, () => "done"), "done");
    same(listeners.size, 0, "listeners");
  },
};

/** Returns the number of commands that were sent; a pipeline has several. */
function commandsOf(sent) {
  const bodies = sent.map(({ init }) => init.body).filter(Boolean).map((body) => JSON.parse(body));
  return bodies.reduce((sum, body) => sum + (Array.isArray(body[0]) ? body.length : 1), 0);
}
