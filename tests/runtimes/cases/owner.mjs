/** Re-entry: acquisitions of one owner share one hold. */

import { ok, same } from "../check.mjs";

export const owner = {
  async "an owner re-enters its hold without a request"(world) {
    const { locks, sent } = world.client();
    const name = world.name();
    const lock = locks.owner().lock(name);
    const outer = await lock.acquire();
    const requests = sent.length;
    const inner = await lock.acquire();
    const third = await lock.tryAcquire();
    same(sent.length, requests, "requests");
    same([inner.token, third.token, outer.holdCount, inner.holdCount], [outer.token, outer.token, 3, 3]);
    same((await locks.lock(name).inspect()).holdCount, 1, "Redis counts one hold");

    same([await third.release(), await third.release()], ["released", "released"]);
    same([outer.holdCount, await outer.isHeld(), third.remaining() > 0], [2, true, true]);
    await inner.release();
    same([outer.holdCount, await outer.isHeld()], [1, true]);
    same(await outer.release(), "released");
    same([outer.holdCount, (await locks.lock(name).inspect()).locked], [0, false]);
  },

  async "concurrent acquisitions of one owner share one hold"(world) {
    const { locks } = world.client();
    const lock = locks.owner().lock(world.name());
    const leases = await Promise.all(Array.from({ length: 5 }, () => lock.acquire({ waitMs: 30_000 })));
    same(new Set(leases.map(({ token }) => token)).size, 1);
    same(leases[0].holdCount, 5);
    same(await Promise.all(leases.map((lease) => lease.release())), Array(5).fill("released"));
    same((await lock.inspect()).locked, false);
  },

  async "an owner's hold excludes the client and its other owners"(world) {
    const { locks } = world.client();
    const name = world.name();
    const lease = await locks.owner().lock(name).acquire();
    same([await locks.lock(name).tryAcquire(), await locks.owner().lock(name).tryAcquire()], [null, null]);
    await lease.release();
  },

  // S85.
  async "a nested run of one owner re-enters its hold"(world) {
    const { locks } = world.client();
    const lock = locks.owner().lock(world.name());
    const tokens = await lock.run(async (outer) => lock.run(async (inner) => [outer.token, inner.token, inner.holdCount]));
    same([tokens[0] === tokens[1], tokens[2]], [true, 2]);
    same((await lock.inspect()).locked, false);
  },

  async "an owner acquires a new hold after the loss of its first"(world) {
    const { locks } = world.client();
    const lock = locks.owner().lock(world.name());
    const first = await lock.acquire();
    await lock.forceRelease();
    same(await first.isHeld(), false);
    const second = await lock.acquire();
    ok(second.token > first.token, "a hold of its own");
    same([await first.release(), await second.isHeld(), await second.release()], ["lost", true, "released"]);
  },
};
