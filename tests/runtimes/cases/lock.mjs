/** A lock: `tryAcquire`, `acquire`, `run`, `inspect` and `release`. */

import { ok, rejection, rejects, same, throws, until } from "../check.mjs";

export const lock = {
  async "a free lock is acquired, inspected and released"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    ok(Number.isSafeInteger(lease.token) && lease.token > 0, "the token is a whole number");
    same([lock.name, lease.name], [lock.name, lock.name]);
    ok(lease.remaining() > 0 && lease.remaining() <= 30_000, "the lease lasts 30 s at most");
    same([lease.holdCount, lease.signal.aborted, await lease.isHeld()], [1, false, true]);

    const state = await lock.inspect();
    ok(Object.isFrozen(state), "a state is a snapshot");
    ok(state.remainingMs > 0 && state.remainingMs <= 30_000, "Redis says for how long");
    same({ ...state, remainingMs: 1 }, { locked: true, holdCount: 1, remainingMs: 1, lastToken: lease.token });

    same(await lease.release(), "released");
    same([lease.remaining(), lease.signal.aborted], [0, false]);
    const free = { locked: false, holdCount: 0, remainingMs: null, lastToken: lease.token };
    same(await lock.inspect(), free);
  },

  // S80.
  async "a second release returns the same result, sequentially and concurrently"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    const lease = await lock.acquire();
    same(await lease.release(), "released");
    const requests = sent.length;
    same([await lease.release(), sent.length], ["released", requests]);
    const other = await lock.acquire();
    same(await Promise.all([other.release(), other.release()]), ["released", "released"]);
    same((await lock.inspect()).locked, false);
  },

  // S28.
  async "tryAcquire returns null while the lock is held"(world) {
    const lock = world.lock();
    const lease = await lock.tryAcquire();
    same(await lock.tryAcquire(), null);
    same(await world.client().locks.lock(lock.name).tryAcquire({ leaseMs: 60_000 }), null);
    await lease.release();
    const next = await lock.tryAcquire({ leaseMs: 20_000 });
    ok(next.token > lease.token, "tokens rise");
    ok(next.remaining() <= 20_000, "the lease is as long as requested");
    await next.release();
  },

  async "a waiter acquires the lock after the release"(world) {
    const lock = world.lock();
    const holder = await lock.acquire();
    const { locks, sent } = world.client();
    const waiting = locks.lock(lock.name).acquire({ waitMs: 60_000 });
    await until(() => sent.length > 0, "the waiter sends a request");
    await holder.release();
    const lease = await waiting;
    ok(lease.token > holder.token, "tokens rise");
    await lease.release();
  },

  async "a wait timeout reports the remaining time of the hold"(world) {
    const lock = world.lock();
    const holder = await lock.acquire();
    const error = await rejects(lock.acquire({ waitMs: 1 }), world.WaitTimeoutError);
    ok(error.remainingMs > 0 && error.remainingMs <= 30_000, "the remaining time of the hold");
    await rejects(lock.run({ waitMs: 1 }, () => ok(false, "the work does not start")), world.WaitTimeoutError);
    await holder.release();
  },

  async "run holds the lock during the work and returns its result"(world) {
    const lock = world.lock();
    const result = await lock.run(async (lease) => {
      same([await lease.isHeld(), await lock.tryAcquire()], [true, null]);
      return { token: lease.token };
    });
    ok(result.token > 0, "the work's result");
    same(await lock.run({ waitMs: 60_000, leaseMs: 60_000 }, () => "at once"), "at once");
    same(await lock.run(() => undefined), undefined);
    same((await lock.inspect()).locked, false);
  },

  // S83.
  async "run rethrows the work's error unchanged and releases the lock"(world) {
    const lock = world.lock();
    for (const thrown of [new Error("mine"), "a text", null, undefined]) {
      const rejected = await rejection(lock.run(() => { throw thrown; }));
      ok(rejected === thrown, "thrown at once");
      ok((await rejection(lock.run(async () => { throw thrown; }))) === thrown, "thrown later");
    }
    same((await lock.inspect()).locked, false);
  },

  async "forceRelease ends the hold of another client"(world) {
    const lock = world.lock();
    same(await lock.forceRelease(), false);
    const lease = await lock.acquire();
    same(await world.client().locks.lock(lock.name).forceRelease(), true);
    same([(await lock.inspect()).locked, await lease.isHeld()], [false, false]);
  },

  async "concurrent clients hold the lock one at a time, with increasing fencing tokens"(world) {
    const lock = world.lock();
    const tokens = [];
    let inside = 0;
    await Promise.all(
      Array.from({ length: 8 }, () =>
        world.client().locks.lock(lock.name).run({ waitMs: 60_000, maxRequests: 10_000 }, async (lease) => {
          same(++inside, 1, "workers inside");
          await lease.isHeld();
          tokens.push(lease.token);
          inside -= 1;
        }),
      ),
    );
    same(tokens, [...tokens].sort((a, b) => a - b));
    same(new Set(tokens).size, 8);
  },

  async "each name that Redisson accepts identifies a lock of its own"(world) {
    const tail = crypto.randomUUID();
    for (const name of [`é/?#% "${tail}`, `{${tail}}:tag`, `${"n".repeat(512 - tail.length)}${tail}`, `\u{1f512}${tail}`]) {
      const lock = world.client().locks.lock(name);
      same(lock.name, name);
      const lease = await lock.acquire();
      same([lease.name, (await world.client().locks.lock(name).inspect()).locked], [name, true]);
      await lease.release();
    }
  },

  "creating a lock sends no request"(world) {
    const { locks, sent } = world.client();
    locks.lock(world.name());
    locks.owner().lock(world.name());
    throws(() => locks.lock(""), world.InvalidOptionError, { option: "name" });
    same(sent.length, 0, "requests");
  },
};
