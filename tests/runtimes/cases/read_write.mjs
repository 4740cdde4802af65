/** Many readers or one writer. */

import { ok, rejects, same, throws, until } from "../check.mjs";
import { advanceTime } from "../watch.mjs";

export const readWrite = {
  async "concurrent readers exclude writers"(world) {
    const { locks } = world.client();
    const name = world.name();
    const { read, write } = locks.readWriteLock(name);
    same([read.name, write.name], [name, name]);
    const readers = [await read.acquire(), await locks.readWriteLock(name).read.tryAcquire()];
    same([await write.tryAcquire(), await readers[0].isHeld(), await readers[1].isHeld()], [null, true, true]);
    same(await readers[0].release(), "released");
    same([await readers[1].isHeld(), await write.tryAcquire()], [true, null]);
    await readers[1].release();
    same(await (await write.tryAcquire()).release(), "released");
  },

  async "a writer excludes readers and writers, and its fencing token exceeds earlier ones"(world) {
    const { locks, sent } = world.client();
    const { read, write } = locks.readWriteLock(world.name());
    const first = await write.acquire();
    same([await read.tryAcquire(), await write.tryAcquire()], [null, null]);
    const requests = sent.length;
    const waits = read.acquire({ waitMs: 60_000 });
    await until(() => sent.length > requests, "the reader sends a request");
    await first.release();
    await (await waits).release();
    const second = await write.acquire();
    ok(second.token > first.token, "tokens rise");
    await second.release();
  },

  async "a writer can acquire the read lock and keep it, shared, after releasing the write lock"(world) {
    const { locks } = world.client();
    const name = world.name();
    const { read, write } = locks.owner().readWriteLock(name);
    const others = locks.readWriteLock(name);
    const writeLease = await write.acquire();
    const readLease = await read.acquire();
    same(await others.read.tryAcquire(), null);
    same(await writeLease.release(), "released");
    const other = await others.read.tryAcquire();
    same([await readLease.isHeld(), await other.isHeld(), await others.write.tryAcquire()], [true, true, null]);
    await other.release();
    same(await readLease.release(), "released");
  },

  async "a write acquisition by the owner of a read lock is rejected as a self-deadlock"(world) {
    const { locks, sent } = world.client();
    const { read, write } = locks.owner().readWriteLock(world.name());
    const readLease = await read.acquire();
    const requests = sent.length;
    await rejects(write.acquire(), world.ReentrancyError, { reason: "reads" });
    same(sent.length, requests, "requests");
    await readLease.release();
    await (await write.acquire()).release();
  },

  async "a waiting writer excludes new readers if writers are preferred"(world) {
    const { locks } = world.client();
    const { read, write } = locks.readWriteLock(world.name(), { preferWriters: true });
    const readLease = await read.acquire();
    await rejects(write.acquire({ waitMs: 1 }), world.WaitTimeoutError);
    const waitingWrite = write.acquire({ waitMs: 60_000 });
    await until(async () => {
      const late = await read.tryAcquire();
      await late?.release();
      return late === null;
    }, "a new reader is kept out");
    await readLease.release();
    await (await waitingWrite).release();
  },

  async "a long renewal of a read lock is limited to the time of Java's watchdog and continued automatically"(world) {
    const { locks, sent } = world.client();
    const name = world.name();
    const { read } = locks.readWriteLock(name);
    for (const lock of [read, locks.multiLock([locks.lock(world.name()), read])]) {
      const lease = await lock.acquire({ leaseMs: 15_000 });
      await lease.renew({ leaseMs: 600_000 });
      ok(lease.remaining() > 15_000 && lease.remaining() <= 30_000, "no longer than Redis keeps it");
      ok((await read.inspect()).remainingMs <= 30_000, "no longer in Redis");
      const requests = sent.length;
      advanceTime(10_000);
      await until(() => sent.length > requests && lease.remaining() > 25_000, "a renewal, a third of 30 s later");
      same(await lease.release(), "released");
    }
    const alone = await locks.readWriteLock(name, { peerWatchdogMs: null }).read.acquire({ leaseMs: 60_000 });
    await alone.renew({ leaseMs: 600_000 });
    ok(alone.remaining() > 500_000, "no Java program shortens it");
    await alone.release();
  },

  "invalid lock options are rejected without a request"(world) {
    const { locks, sent } = world.client();
    for (const preferWriters of [null, "yes", 99, 5_001]) {
      throws(() => locks.readWriteLock("a", { preferWriters }), world.InvalidOptionError, { option: "preferWriters" });
    }
    for (const peerWatchdogMs of [0, 99, "30s", true]) {
      throws(() => locks.readWriteLock("a", { peerWatchdogMs }), world.InvalidOptionError, { option: "peerWatchdogMs" });
    }
    locks.readWriteLock("a", { preferWriters: 100, peerWatchdogMs: null });
    locks.readWriteLock("a", { preferWriters: false, peerWatchdogMs: 60_000 });
    same(sent.length, 0, "requests");
  },
};
