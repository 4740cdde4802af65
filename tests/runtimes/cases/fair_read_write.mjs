/** The fair read-write lock: one queue for both sides, steals, and the query of a namespace. */

import { ok, rejection, rejects, same, throws, until } from "../check.mjs";

/** A waiter keeps its place for a minute without polling: a busy machine may stop it for long. */
const PATIENT = { lifeMs: 60_000 };

export const fairReadWrite = {
  async "readers share, a writer is alone, and a try passes no waiter"(world) {
    const { locks } = world.client();
    const name = world.name();
    const lock = locks.fairReadWriteLock(name, PATIENT);
    same([lock.name, lock.read.name, lock.write.name, Object.isFrozen(lock)], [name, name, name, true]);
    const readers = [await lock.read.acquire(), await locks.fairReadWriteLock(name).read.tryAcquire()];
    same(readers[0].token, readers[1].token, "the readers' tokens");
    same(await lock.write.tryAcquire(), null);
    const writing = lock.write.acquire({ waitMs: 60_000, maxRequests: 10_000 });
    await until(async () => (await lock.inspect()).exclusiveWaiters === 1, "the writer waits");
    same(await lock.read.tryAcquire(), null, "a try beside a waiting writer");
    for (const reader of readers) same(await reader.release(), "released");
    const writer = await writing;
    ok(writer.token > readers[0].token, "tokens rise");
    same([await lock.read.tryAcquire(), await lock.write.tryAcquire()], [null, null]);
    same(await writer.release(), "released");
  },

  async "waiters of both sides are granted in the order of arrival"(world) {
    const { locks } = world.client();
    const lock = locks.fairReadWriteLock(world.name(), PATIENT);
    const first = await lock.write.acquire();
    const order = [];
    const waiters = [];
    for (const [place, side] of ["write", "read", "write"].entries()) {
      waiters.push(lock[side].run({ waitMs: 60_000, maxRequests: 10_000 }, () => order.push(side + place)));
      await until(async () => (await lock.inspect()).waiters === place + 1, "the waiter is in the queue");
    }
    await first.release();
    await Promise.all(waiters);
    same(order, ["write0", "read1", "write2"]);
  },

  async "an aborted waiter leaves the queue"(world) {
    const { locks } = world.client();
    const lock = locks.fairReadWriteLock(world.name());
    const holder = await lock.write.acquire();
    const controller = new AbortController();
    const waiting = rejection(lock.read.acquire({ waitMs: "until-aborted", signal: controller.signal }));
    await until(async () => (await lock.inspect()).waiters === 1, "the waiter is in the queue");
    controller.abort("enough");
    same([await waiting, (await lock.query()).pending], ["enough", []]);
    await holder.release();
  },

  async "a steal ends the holds of others, which learn it with their next renewal"(world) {
    const { locks } = world.client();
    const lock = locks.fairReadWriteLock(world.name());
    const reader = await lock.read.acquire();
    const thief = await lock.steal({ leaseMs: 60_000 });
    ok(thief.token > reader.token, "tokens rise");
    const { locked, holdCount, mode, lastToken } = await lock.inspect();
    same([locked, holdCount, mode, lastToken], [true, 1, "exclusive", thief.token]);
    await rejects(reader.renew(), world.LeaseLostError, { reason: "stolen" });
    same([reader.signal.aborted, reader.signal.reason.reason], [true, "stolen"]);
    const events = [];
    for await (const { type, reason } of reader.events()) events.push([type, reason]);
    same(events, [["lost", "stolen"]]);
    same([await reader.release(), await thief.release()], ["lost", "released"]);
  },

  async "a query lists holds and waits of the namespace with modes and client ids"(world) {
    const { locks } = world.client();
    const tag = `{${world.name()}}`;
    // A silent waiter stays as long as a lease, so that one check suits the times of both.
    const lock = (name, clientId) => locks.fairReadWriteLock(name, { lifeMs: 30_000, clientId });
    same(await lock(tag, "a").query(), { held: [], pending: [] });
    const held = [await lock(`${tag}1`, "tab 1").read.acquire(), await lock(`${tag}2`, "tab 2").write.acquire()];
    const controller = new AbortController();
    const waiting = rejection(lock(`${tag}1`, "tab 3").write.acquire({ waitMs: "until-aborted", signal: controller.signal }));
    await until(async () => (await lock(tag).query()).pending.length === 1, "the writer waits");
    const { held: holds, pending } = await lock(tag).query();
    const isInLease = (ms) => ms > 0 && ms <= 30_000;
    const shown = (entries) => entries.map(({ name, mode, clientId, remainingMs }) => [name, mode, clientId, isInLease(remainingMs)]);
    same(shown(holds), [[`${tag}1`, "shared", "tab 1", true], [`${tag}2`, "exclusive", "tab 2", true]]);
    same(shown(pending), [[`${tag}1`, "exclusive", "tab 3", true]]);
    controller.abort();
    await waiting;
    for (const lease of held) await lease.release();
    const alone = locks.fairReadWriteLock(world.name());
    const lease = await alone.write.acquire();
    same((await alone.query()).held.map(({ name }) => name), [alone.name]);
    same([await alone.forceRelease(), await lease.isHeld(), await alone.forceRelease()], [true, false, false]);
  },

  async "a full queue rejects further waiters"(world) {
    const { locks } = world.client();
    const lock = locks.fairReadWriteLock(world.name(), { ...PATIENT, maxWaiters: 1, maxHolders: 1 });
    const holder = await lock.read.acquire();
    const waiting = lock.read.acquire({ waitMs: 60_000, maxRequests: 10_000 });
    await until(async () => (await lock.inspect()).waiters === 1, "the queue is full");
    await rejects(lock.write.acquire(), world.QueueFullError);
    await holder.release();
    await (await waiting).release();
  },

  async "an owner re-enters one side and may not take the other"(world) {
    const { locks, sent } = world.client();
    const lock = locks.owner().fairReadWriteLock(world.name());
    const reader = await lock.read.acquire();
    const again = await lock.read.acquire();
    same(again.holdCount, 2);
    const requests = sent.length;
    await rejects(lock.write.acquire(), world.ReentrancyError, { reason: "reads" });
    await rejects(lock.steal(), world.ReentrancyError, { reason: "reads" });
    same(sent.length, requests, "requests");
    await again.release();
    await reader.release();
    const writer = await lock.write.acquire();
    await rejects(lock.read.acquire(), world.ReentrancyError, { reason: "held" });
    await writer.release();
  },

  async "an option out of range is rejected by its name"(world) {
    const { locks } = world.client();
    const bad = [
      ["lifeMs", 999], ["lifeMs", 60_001], ["maxHolders", 0], ["maxWaiters", 20_001],
      ["clientId", "\n"], ["clientId", "x".repeat(65)], ["clientId", 7],
    ];
    for (const [option, value] of bad) {
      throws(() => locks.fairReadWriteLock("a", { [option]: value }), world.InvalidOptionError, { option });
    }
    throws(() => locks.fairReadWriteLock("a", { preferWriters: true }), world.InvalidOptionError, { option: "preferWriters" });
    const lock = locks.fairReadWriteLock(world.name());
    await rejects(lock.steal({ waitMs: 5 }), world.InvalidOptionError, { option: "waitMs" });
    const lease = await lock.write.acquire();
    await rejects(lease.eval("return 1"), world.InvalidOptionError, { option: "lease" });
    await lease.release();
  },
};
