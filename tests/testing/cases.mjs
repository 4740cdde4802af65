/**
 * Tests of `edgelatch/testing` under the fake timers of any test runner. Every time is virtual.
 *
 * Each test gets `connect` and `createTestGateway` of the package, and `advance(ms)`, which moves
 * the runner's fake clock and lets promises settle.
 */

const expect = (is, what) => {
  if (!is) throw new Error(`expected ${what}`);
};
const same = (got, expected) => expect(JSON.stringify(got) === JSON.stringify(expected), `${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);

/** Moves the clock until the promise has settled, at most some minutes; returns its outcome. */
async function settled({ advance }, promise, minutes = 3) {
  let outcome;
  promise.then((value) => (outcome = { value }), (error) => (outcome = { error }));
  for (let steps = 0; !outcome && steps < minutes * 120; steps++) await advance(500);
  expect(outcome, "an outcome within some minutes of virtual time");
  return outcome;
}

const valueOf = async (runner, promise) => {
  const { value, error } = await settled(runner, promise);
  if (error) throw error;
  return value;
};
const codeOf = async (runner, promise) => (await settled(runner, promise)).error?.code;

function open({ connect, createTestGateway }) {
  const gateway = createTestGateway();
  const client = (options) => connect({ url: gateway.url, token: gateway.token, fetch: gateway.fetch, ...options });
  return { gateway, client, locks: client() };
}

export const cases = {
  async "clients of one gateway exclude each other"(runner) {
    const { gateway, client, locks } = open(runner);
    const lease = await valueOf(runner, locks.lock("a").tryAcquire());
    same(await valueOf(runner, client().lock("a").tryAcquire()), null);
    same(gateway.held(), [{ name: "a", kind: "lock", holds: 1, remainingMs: gateway.held()[0].remainingMs }]);
    same(await valueOf(runner, lease.release()), "released");
    same(gateway.held(), []);
  },

  async "a waiter gets the lock when another client releases it"(runner) {
    const { gateway, locks } = open(runner);
    const other = gateway.hold("b", { leaseMs: 3_600_000 });
    same(await valueOf(runner, locks.lock("b").tryAcquire()), null);
    const waits = locks.lock("b").acquire();
    await runner.advance(5_000);
    expect(other.release(), "a hold of the other client");
    const lease = await valueOf(runner, waits);
    expect(lease.token > other.token, "a token that rises");
    await valueOf(runner, lease.release());
  },

  async "a waiter gets the lock when the lease of another client ends"(runner) {
    const { gateway, locks } = open(runner);
    const other = gateway.hold("c", { leaseMs: 8_000 });
    const lease = await valueOf(runner, locks.lock("c").acquire());
    expect(!other.release(), "an expired hold of the other client");
    await valueOf(runner, lease.release());
  },

  async "the wait for a lock that another client keeps ends with its time"(runner) {
    const { gateway, locks } = open(runner);
    gateway.hold("d", { leaseMs: 3_600_000 });
    same(await codeOf(runner, locks.lock("d").acquire({ waitMs: 10_000 })), "wait-timeout");
  },

  async "a test that leaves a lease behind does not stop the renewals of the next"(runner) {
    const { locks } = open(runner);
    await valueOf(runner, locks.lock("m").acquire());
  },

  async "a lease is renewed while its work runs"(runner) {
    const { gateway, locks } = open(runner);
    const works = locks.lock("e").run(async (lease) => {
      await new Promise((resolve) => setTimeout(resolve, 120_000));
      return [gateway.held().length, lease.signal.aborted];
    });
    same(await valueOf(runner, works), [1, false]);
    same(gateway.held(), []);
  },

  async "a lease that ends in the middle of work aborts its signal"(runner) {
    const { gateway, locks } = open(runner);
    let reason;
    const works = locks.lock("f").run(async (lease) => {
      expect(gateway.expire("f"), "a hold");
      gateway.hold("f");
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      reason = lease.signal.reason.code;
    });
    same(await codeOf(runner, works), "lease-lost");
    same(reason, "lease-lost");
    same(gateway.held().length, 1);
  },

  async "nothing is held after a call that the gateway did not get"(runner) {
    const { gateway, locks } = open(runner);
    gateway.setDown(true);
    same(await codeOf(runner, locks.lock("g").tryAcquire()), "gateway-unreachable");
    gateway.setDown(false);
    same(gateway.held(), []);
    await valueOf(runner, (await valueOf(runner, locks.lock("g").acquire())).release());
  },

  async "a lease is lost while the gateway is down for longer than it lasts"(runner) {
    const { gateway, locks } = open(runner);
    const lease = await valueOf(runner, locks.lock("h").acquire());
    gateway.setDown(true);
    await valueOf(runner, new Promise((resolve) => lease.signal.addEventListener("abort", resolve)));
    same(lease.signal.reason.code, "lease-lost");
    gateway.setDown(false);
  },

  async "a waiter survives an outage of the gateway"(runner) {
    const { gateway, locks } = open(runner);
    const other = gateway.hold("i");
    const waits = locks.lock("i").acquire();
    await runner.advance(1_000);
    gateway.setDown(true);
    await runner.advance(4_000);
    gateway.setDown(false);
    other.release();
    await valueOf(runner, (await valueOf(runner, waits)).release());
  },

  async "a lost response is not a second hold"(runner) {
    const { gateway, locks } = open(runner);
    gateway.loseReplies();
    const lease = await valueOf(runner, locks.lock("j").acquire());
    same(gateway.held()[0].holds, 1);
    gateway.loseReplies();
    same(await valueOf(runner, lease.release()), "released");
    same(gateway.held(), []);
  },

  async "a refused request is not executed"(runner) {
    const { gateway, locks } = open(runner);
    // As often as a client tries; then it undoes the acquisition.
    gateway.refuse(3);
    same(await codeOf(runner, locks.lock("k").tryAcquire()), "gateway-refused");
    same(gateway.held(), []);
    gateway.refuse();
    const lease = await valueOf(runner, locks.lock("k").acquire());
    await valueOf(runner, lease.release());
  },

  async "a response takes as long as the gateway is told"(runner) {
    const { gateway, locks } = open(runner);
    gateway.delayReplies(2_000);
    let lease;
    locks.lock("l").acquire().then((granted) => (lease = granted));
    await runner.advance(1_000);
    same([gateway.held().length, lease], [1, undefined]);
    await runner.advance(1_500);
    expect(lease, "a lease after two seconds");
    gateway.delayReplies(0);
    await valueOf(runner, lease.release());
  },

  async "several gateways make a redLock"(runner) {
    const opened = [open(runner), open(runner), open(runner)];
    opened[2].gateway.setDown(true);
    const lock = opened[0].locks.redLock(opened.map(({ locks }) => locks.lock("n")));
    const lease = await valueOf(runner, lock.acquire());
    same(opened.map(({ gateway }) => gateway.held().length), [1, 1, 0]);
    await valueOf(runner, lease.release());
  },

  async "an object of each kind is listed and expires"(runner) {
    const { gateway, locks } = open(runner);
    await valueOf(runner, locks.semaphore("semaphore").trySetPermits(2));
    await valueOf(runner, locks.permitExpirableSemaphore("permits").trySetPermits(2));
    const group = await valueOf(runner, locks.groupLock("group", ["x", "y"]).acquire());
    for (const [name, kind] of [["fair", "fairLock"], ["lock", "lock"], ["permits", "permitExpirableSemaphore"], ["semaphore", "semaphore"], ["sides", "write"]]) {
      gateway.hold(name, { kind });
    }
    const listed = gateway.held().map(({ name, kind, holds }) => [name, kind, holds]);
    same(listed, [
      ["fair", "fairLock", 1], ["group", "groupLock", 2], ["lock", "lock", 1], ["permits", "permitExpirableSemaphore", 1],
      ["semaphore", "semaphore", 1], ["sides", "write", 1],
    ]);
    for (const [name] of listed) same([gateway.expire(name), gateway.expire(name)], [true, false]);
    same(await valueOf(runner, group.isHeld()), false);
    same(gateway.held(), []);
  },

  async "the clock of the gateway's Redis can be the test's own"(runner) {
    let time = 1_000_000;
    const gateway = runner.createTestGateway({ now: () => time });
    gateway.hold("o", { leaseMs: 5_000 });
    same(gateway.held()[0].remainingMs, 5_000);
    time += 5_001;
    same(gateway.held(), []);
  },
};
