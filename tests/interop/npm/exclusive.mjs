/**
 * The cases of an exclusive object, for any kind of it. Each case receives its world: `{ java,
 * ours, … }`, see `run.mjs`.
 */

import assert from "node:assert/strict";

import { rejection, until } from "../../runtimes/check.mjs";
import { inTime } from "./in_time.mjs";
import { ms } from "./peer.mjs";
import { wait } from "./wait.mjs";

/**
 * A lease that no test waits for: a waiter that acquires the object was notified of its release.
 */
export const ENDLESS = 86_400_000;
/**
 * A lease whose expiry the tests wait for. A machine that needs more than half of it for the
 * acquisition gets longer ones.
 */
export const SHORT = 1_500;
/**
 * Java's leases, in milliseconds: it renews after a third of the first one, unless the machine is
 * too slow for that.
 */
const JAVA_LEASES = [2_400, 4_800, 9_600, 19_200];

export const exclusive = {
  async "Java is refused while we hold"(world) {
    const { java, ours } = world;
    const lease = await ours.acquire();
    assert.equal(await java.call("tryLock"), false);
    assert.equal(await java.call("tryLock", ms(60), ms(-1)), false);
    await givesBackWhatItDoesNotHold(world);
    assert.equal(await lease.release(), "released");
    assert.equal(await java.call("tryLock"), true);
  },

  async "we are refused while Java holds"({ java, ours, edgelatch }) {
    await java.call("lock");
    assert.equal(await ours.tryAcquire(), null);
    const error = await rejection(inTime(60, (waitMs) => ours.acquire({ waitMs })));
    assert.ok(error instanceof edgelatch.WaitTimeoutError);
    assert.ok(error.remainingMs > 0 && error.remainingMs <= 30_000);
    await java.call("unlock");
    assert.equal(await (await ours.tryAcquire()).release(), "released");
  },

  async "we take over after Java unlocks"(world) {
    const { java } = world;
    await java.call("lock", ms(ENDLESS));
    const { acquired } = await wait(world);
    await java.call("unlock");
    const lease = await acquired;
    assert.equal(await java.call("tryLock"), false);
    assert.equal(await lease.release(), "released");
  },

  async "Java takes over when our lease has run out"({ java, javaHolds, ours }) {
    const lease = await inTime(SHORT, (leaseMs) => ours.acquire({ leaseMs }));
    await java.call("lock");
    await until(() => lease.signal.aborted, "we are told");
    assert.equal(lease.signal.reason.reason, "expired");
    assert.equal(await lease.release(), "lost");
    assert.ok(await javaHolds());
  },

  async "we take over when the lease of Java has run out"(world) {
    const { java, ours } = world;
    await java.call("lock", ms(SHORT));
    const lease = await ours.acquire();
    await givesBackWhatItDoesNotHold(world);
    assert.equal(await lease.isHeld(), true);
    assert.equal(await lease.release(), "released");
  },

  async "Java renews while we wait"(world) {
    for (const lockWatchdogTimeout of JAVA_LEASES) {
      const { own, java, javaHolds } = await world.another({ lockWatchdogTimeout });
      await java.call("lock");
      const { acquired } = await wait(world);
      let waits = true;
      acquired.then(() => (waits = false));
      await until(fourRenewals(world, () => !waits), "four renewals");
      const stillWaits = waits;
      const held = await javaHolds();
      const unlocked = await java.call("unlock").catch((error) => error);
      // Otherwise Redis has expired the hold: the machine is too slow for Java to renew so often.
      const renewed = held && !(unlocked instanceof Error);
      assert.ok(stillWaits || !renewed, "we got what Java holds");
      assert.equal(await (await acquired).release(), "released");
      await own.close();
      if (renewed) return;
    }
    throw new Error("Java renews too late");
  },
};

/**
 * Whether the remaining time of the hold has risen four times in a Redis, or `isOver`. Java's red
 * lock may lack the hold on some.
 */
function fourRenewals({ commandEverywhere, name }, isOver) {
  const renewals = [];
  let last = [];
  return async () => {
    const now = await commandEverywhere("PTTL", name);
    now.forEach((left, node) => (renewals[node] = (renewals[node] ?? 0) + Number(left > last[node])));
    last = now;
    return renewals.some((count) => count >= 4) || isOver();
  };
}

/** Kinds that are one hash, which both sides can query and delete. */
export const told = {
  async "both sides read what the other holds"({ java, ours }) {
    const lease = await ours.acquire();
    assert.equal(await java.call("isLocked"), true);
    assert.equal(await java.call("isHeldByCurrentThread"), false);
    await lease.renew({ leaseMs: 600_000 });
    const left = await java.call("remainTimeToLive");
    assert.ok(left > 500_000 && left <= 600_000, `${left}`);
    assert.equal(await lease.release(), "released");

    await java.call("lock");
    const { locked, holdCount, remainingMs } = await ours.inspect();
    assert.deepEqual({ locked, holdCount }, { locked: true, holdCount: 1 });
    assert.ok(remainingMs > 0 && remainingMs <= 30_000);
  },

  async "each side ends the other's hold by force, and the other is notified"({ java, ours }) {
    const lease = await ours.acquire();
    assert.equal(await java.call("forceUnlock"), true);
    assert.equal(await lease.isHeld(), false);
    assert.equal(lease.signal.reason.reason, "gone");
    assert.equal(await lease.release(), "lost");
    await java.call("lock");
    assert.equal(await ours.forceRelease(), true);
    const next = await ours.acquire();
    await isNotTheHolder(java);
    assert.equal(await next.release(), "released");
  },

  async "our forced release wakes Java"({ java, ours }) {
    const lease = await ours.acquire({ leaseMs: ENDLESS });
    const waiting = java.call("lock");
    await java.waits();
    assert.equal(await ours.forceRelease(), true);
    await waiting;
    assert.equal(await lease.release(), "lost");
  },
};

/** Kinds whose release notifies waiters. */
export const tells = {
  async "our release wakes Java"({ java, javaHolds, ours }) {
    const lease = await ours.acquire({ leaseMs: ENDLESS });
    const waiting = java.call("lock");
    await java.waits();
    assert.equal(await lease.release(), "released");
    await waiting;
    assert.ok(await javaHolds());
  },
};

/** Re-entrant kinds. */
export const again = {
  async "each side enters again while the other waits"(world) {
    const { java, ours } = world;
    await java.call("lock");
    assert.equal(await java.call("tryLock"), true);
    await java.call("unlock");
    assert.equal(await ours.tryAcquire(), null);
    await java.call("unlock");

    const owner = asOneOwner(world);
    const outer = await owner.acquire({ leaseMs: ENDLESS });
    const inner = await owner.acquire({ leaseMs: ENDLESS });
    assert.equal(inner.token, outer.token);
    const waiting = java.call("lock");
    await java.waits();
    assert.equal(await outer.release(), "released");
    assert.equal(await inner.isHeld(), true);
    assert.equal(await inner.release(), "released");
    await waiting;
  },
};

/** Kinds that are not re-entrant. */
export const never = {
  async "each side gets the reply that it holds the lock already"(world) {
    const { java, ours, edgelatch } = world;
    await java.call("lock");
    assert.equal((await rejection(java.call("lock"))).javaClass, "java.lang.IllegalMonitorStateException");
    assert.equal(await ours.tryAcquire(), null);
    await java.call("unlock");
    const owner = asOneOwner(world);
    const lease = await owner.acquire();
    assert.ok((await rejection(owner.acquire())) instanceof edgelatch.ReentrancyError);
    assert.equal(await java.call("tryLock"), false);
    assert.equal(await lease.release(), "released");
  },
};

function asOneOwner({ client, make }) {
  const { locks, nodes, ...rest } = client();
  return make({ locks: locks.owner(), nodes, ...rest });
}

async function givesBackWhatItDoesNotHold({ kind, java }) {
  if (kind.ignoresStrangers) await java.call("unlock");
  else await isNotTheHolder(java);
}

async function isNotTheHolder(java) {
  const error = await rejection(java.call("unlock"));
  assert.equal(error.javaClass, "java.lang.IllegalMonitorStateException");
}
