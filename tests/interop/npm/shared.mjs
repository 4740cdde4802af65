/** Shared objects: readers, permits, and a latch. Each case receives its world, see `run.mjs`. */

import assert from "node:assert/strict";

import { rejection, until } from "../../runtimes/check.mjs";
import { contended, rounds } from "./contention.mjs";
import { ENDLESS, SHORT } from "./exclusive.mjs";
import { inTime } from "./in_time.mjs";
import { ms } from "./peer.mjs";
import { wait } from "./wait.mjs";

export const readers = {
  async "readers of both sides share it and writers of both are refused"({ java, ours, other, client, name }) {
    const [writer, { locks }] = [other({ kind: "writeLock" }), client()];
    const lease = await ours.acquire();
    assert.equal(await java.call("tryLock"), true);
    assert.equal((await ours.inspect()).holdCount, 2);
    assert.equal(await writer.call("tryLock"), false);
    assert.equal(await lease.release(), "released");
    assert.equal(await locks.readWriteLock(name).write.tryAcquire(), null);
    await java.call("unlock");
    assert.equal(await writer.call("tryLock"), true);
    assert.equal(await ours.tryAcquire(), null);
  },

  async "our last reader wakes a writer of Java"({ ours, other }) {
    const writer = other({ kind: "writeLock" });
    const lease = await ours.acquire({ leaseMs: ENDLESS });
    const waiting = writer.call("lock");
    await writer.waits();
    assert.equal(await lease.release(), "released");
    await waiting;
  },

  async "our writer that keeps a read admits readers of Java"({ java, other, client, name }) {
    const { read, write } = client().locks.owner().readWriteLock(name, { peerWatchdogMs: null });
    const writing = await write.acquire({ leaseMs: ENDLESS });
    const reading = await read.acquire({ leaseMs: ENDLESS });
    const waiting = java.call("lock");
    await java.waits();
    assert.equal(await writing.release(), "released");
    await waiting;
    assert.equal(await other({ kind: "writeLock" }).call("tryLock"), false);
    assert.equal(await reading.release(), "released");
  },

  async "we read when the writer of Java has ended"(world) {
    const writer = world.other({ kind: "writeLock" });
    await writer.call("lock", ms(ENDLESS));
    const { acquired } = await wait(world);
    await writer.call("unlock");
    assert.equal(await (await acquired).release(), "released");
  },
};

export const semaphore = {
  async "both sides count the same permits"({ java, ours }) {
    assert.equal(await java.call("trySetPermits", 4), true);
    assert.equal(await ours.trySetPermits(9), false);
    const lease = await ours.acquire(3);
    assert.equal(await java.call("availablePermits"), 1);
    assert.equal(await java.call("tryAcquire", 2), false);
    await java.call("acquire");
    assert.equal(await ours.tryAcquire(), null);
    assert.equal(await lease.release(), "released");
    assert.equal(await ours.drainPermits(), 3);
    assert.equal(await ours.addPermits(2), 2);
    assert.equal(await java.call("drainPermits"), 2);
  },

  async "each side acquires permits that the other releases"(world) {
    const { java, ours, edgelatch } = world;
    await ours.trySetPermits(1);
    const lease = await ours.acquire();
    const waiting = java.call("acquire");
    await java.waits();
    assert.equal(await lease.release(), "released");
    await waiting;
    const ended = await rejection(inTime(60, (waitMs) => ours.acquire(1, { waitMs })));
    assert.ok(ended instanceof edgelatch.WaitTimeoutError);
    const { acquired } = await wait(world, (object, options) => object.acquire(1, options));
    await java.call("release");
    assert.equal(await (await acquired).release(), "released");
  },

  async "both sides contend and no more are inside than there are permits"(world) {
    await world.ours.trySetPermits(2);
    await contended(world, { take: "acquire", give: { method: "release", args: [] }, most: 2 });
    assert.equal(await world.java.call("availablePermits"), 2);
  },
};

export const permits = {
  async "each side releases and prolongs permits that the other has acquired"({ java, ours }) {
    await ours.trySetPermits(4);
    const lease = await ours.acquire(2, { leaseMs: 60_000 });
    const [first] = lease.permitIds;
    assert.equal(await java.call("updateLeaseTime", first, ms(600_000)), true);
    assert.ok((await ours.inspect([first])).remainingMs > 500_000);
    assert.equal(await java.call("tryRelease", lease.permitIds), 2);
    assert.equal(await lease.isHeld(), false);
    assert.equal(await lease.release(), "lost");

    const ids = await java.call("acquire", 3);
    const { available, acquired, total } = await ours.inspect();
    assert.deepEqual({ available, acquired, total }, { available: 1, acquired: 3, total: 4 });
    assert.equal(await ours.updateLeaseTime(ids, 100_000), true);
    assert.ok((await java.call("getLeaseTime", ids[0])) > 50_000);
    assert.equal(await ours.release(ids), 3);
    assert.equal(await java.call("acquiredPermits"), 0);
  },

  async "each side acquires permits that the other releases, and expired ones"(world) {
    const { java, ours } = world;
    await ours.trySetPermits(1);
    const lease = await ours.acquire(1, { leaseMs: ENDLESS });
    const waiting = java.call("acquire");
    await java.waits();
    assert.equal(await lease.release(), "released");
    const id = await waiting;
    const take = (object, options) => inTime(SHORT, (leaseMs) => object.acquire(1, { ...options, leaseMs }));
    const { acquired } = await wait(world, take);
    await java.call("release", id);
    const short = await acquired;
    const next = await java.call("acquire", ms(SHORT));
    await until(() => short.signal.aborted, "we are told");
    assert.notEqual(next, short.permitIds[0]);
    assert.equal(await (await ours.acquire()).release(), "released");
  },

  async "both sides contend and no more are inside than there are permits"(world) {
    await world.ours.trySetPermits(2);
    await contended(world, { take: "acquire", give: { method: "release", args: ["$taken"] }, most: 2 });
    assert.equal(await world.java.call("availablePermits"), 2);
    assert.equal(await world.java.call("acquiredPermits"), 0);
  },
};

export const latch = {
  async "both sides count it down, and each ends the other's waits"(world) {
    const { java, other, ours, edgelatch } = world;
    await java.call("trySetCount", 2);
    assert.equal(await ours.trySetCount(9), false);
    const waiting = java.call("await");
    await java.waits();
    assert.equal(await ours.countDown(), 1);
    assert.equal(await other().call("getCount"), 1);
    assert.equal(await ours.countDown(), 0);
    await waiting;

    assert.equal(await ours.trySetCount(1), true);
    const ended = await rejection(inTime(60, (waitMs) => ours.wait({ waitMs })));
    assert.ok(ended instanceof edgelatch.WaitTimeoutError);
    const { acquired } = await wait(world, (object, options) => object.wait(options));
    await java.call("countDown");
    await acquired;
    assert.equal(await ours.count(), 0);
  },

  async "a latch that we delete ends Java's waits"({ java, ours }) {
    await ours.trySetCount(5);
    const waiting = java.call("await");
    await java.waits();
    assert.equal(await ours.delete(), true);
    await waiting;
  },

  async "both sides count down together and each count counts once"({ java, other, ours }) {
    await rounds(async () => {
      assert.equal(await ours.trySetCount(5), true);
      const theirs = [java, other()].flatMap((one) => [one.call("countDown"), one.call("await")]);
      const left = await Promise.all([ours.countDown(), ours.countDown()]);
      assert.notEqual(left[0], left[1]);
      await until(async () => (await ours.count()) === 1, "all but one");
      assert.equal(await ours.countDown(), 0);
      await Promise.all([...theirs, ours.wait()]);
    });
  },
};
