/**
 * Rows of the site's page `comparison.md` about `redlock` and `redis-semaphore`, and of
 * `docs/migrating-from-redis-semaphore.md`, that no other test shows: what the two libraries do
 * themselves, with a real Redis behind a proxy.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { until } from "../runtimes/check.mjs";
import { startProxy } from "./tcp_proxy.mjs";

const MINUTE = 60_000;
const FAST = { retryDelay: 1, retryJitter: 0 };
const PATIENT = { acquireTimeout: MINUTE, retryInterval: 10 };

const newName = () => `comparison:${crypto.randomUUID()}`;

/**
 * Defines the tests. `peers` has the modules `redlock` and `redisSemaphore`, and the class of TCP
 * clients; `nodes` has three Redis servers when the tests run.
 */
export function comparisonTests(peers, nodes) {
  /** Starts a proxy in front of the first Redis, with a client through it. */
  const behindProxy = async (t) => {
    const proxy = await startProxy(nodes[0].socket);
    const client = new peers.TcpClient({ host: "127.0.0.1", port: proxy.port });
    t.after(() => {
      client.disconnect();
      proxy.close();
    });
    return { proxy, client };
  };
  redlockTests(peers.redlock, nodes, behindProxy);
  redisSemaphoreTests(peers.redisSemaphore, nodes, behindProxy);
}

function redlockTests({ default: Redlock }, nodes, behindProxy) {
  test("redlock leaves no hold behind after a lost response to an acquisition", async (t) => {
    const { proxy, client } = await behindProxy(t);
    const redlock = new Redlock([client], { ...FAST, retryCount: 2 });
    // Redis knows the script from now on, so that the next response is that of the acquisition.
    await (await redlock.acquire([newName()], MINUTE)).release();
    const name = newName();
    proxy.loseResponse();
    const error = await redlock.acquire([name], MINUTE).catch((error) => error);
    assert.equal(error.name, "ExecutionError");
    assert.equal(await nodes[0].redis.exists(name), 0);
  });

  test("the signal of redlock does not abort while Redis hangs, though another client has the lock", async (t) => {
    const { proxy, client } = await behindProxy(t);
    const redlock = new Redlock([client], { ...FAST, retryCount: 0 });
    const other = new Redlock([nodes[0].redis], { retryDelay: 20, retryCount: -1 });
    /** Returns whether the lease was long enough for this machine to send an extension in time. */
    const hangDuring = async (lease) => {
      const name = newName();
      let isInTime = false;
      const used = redlock.using([name], lease, { automaticExtensionThreshold: lease - 200 }, async (signal) => {
        proxy.hang();
        await until(() => proxy.withheld() > 0 || signal.aborted, "an extension is sent");
        isInTime = !signal.aborted;
        const lock = await other.acquire([name], MINUTE);
        assert.equal(signal.aborted, !isInTime);
        proxy.resume();
        await until(() => signal.aborted, "the extension is refused");
        await lock.release();
      });
      // The hold is gone when `using` releases it.
      await assert.rejects(used, { name: "ExecutionError" });
      return isInTime;
    };
    let lease = 2_000;
    while (!(await hangDuring(lease))) lease *= 2;
  });
}

function redisSemaphoreTests({ LostLockError, Mutex, RedlockMutex, Semaphore }, nodes, behindProxy) {
  test("redis-semaphore leaves a hold behind after a lost response to an acquisition", async (t) => {
    const { proxy, client } = await behindProxy(t);
    await client.ping();
    const name = newName();
    const mutex = new Mutex(client, name, { lockTimeout: MINUTE, acquireAttemptsLimit: 2, acquireTimeout: MINUTE });
    proxy.loseResponse();
    assert.equal(await mutex.tryAcquire(), false);
    assert.equal(await nodes[0].redis.get(`mutex:${name}`), mutex.identifier);
  });

  test("redis-semaphore renews a hold by itself, and calls back after a loss", async () => {
    const { redis } = nodes[0];
    const name = newName();
    const lost = Promise.withResolvers();
    const mutex = new Mutex(redis, name, { lockTimeout: MINUTE, refreshInterval: 20, onLockLost: lost.resolve });
    await mutex.acquire();
    const end = await redis.pexpiretime(`mutex:${name}`);
    await until(async () => (await redis.pexpiretime(`mutex:${name}`)) > end, "the hold is renewed");
    await redis.del(`mutex:${name}`);
    assert.ok((await lost.promise) instanceof LostLockError);
    assert.equal(mutex.isAcquired, false);
  });

  test("redis-semaphore does not call back while Redis hangs, though another client has the lock", async (t) => {
    const { proxy, client } = await behindProxy(t);
    const name = newName();
    const lost = Promise.withResolvers();
    let isLost = false;
    const onLockLost = (error) => {
      isLost = true;
      lost.resolve(error);
    };
    const mutex = new Mutex(client, name, { lockTimeout: 2_000, refreshInterval: 200, onLockLost });
    await mutex.acquire();
    proxy.hang();
    const other = new Mutex(nodes[0].redis, name, { lockTimeout: MINUTE, ...PATIENT });
    await other.acquire();
    assert.deepEqual([isLost, mutex.isAcquired], [false, true]);
    proxy.resume();
    await lost.promise;
    await other.release();
  });

  test("redis-semaphore has semaphores, and locks on a majority of servers", async () => {
    const [name, majority] = [newName(), newName()];
    const newSemaphore = () => new Semaphore(nodes[0].redis, name, 2, { lockTimeout: MINUTE, acquireAttemptsLimit: 1, acquireTimeout: MINUTE });
    const holders = [newSemaphore(), newSemaphore()];
    for (const holder of holders) assert.equal(await holder.tryAcquire(), true);
    assert.equal(await newSemaphore().tryAcquire(), false);
    for (const holder of holders) await holder.release();

    const clients = nodes.map(({ redis }) => redis);
    const busy = new Mutex(clients[2], majority, { lockTimeout: MINUTE });
    await busy.acquire();
    const mutex = new RedlockMutex(clients, majority, { lockTimeout: MINUTE });
    await mutex.acquire();
    const holds = await Promise.all(clients.map((redis) => redis.get(`mutex:${majority}`)));
    assert.deepEqual(holds, [mutex.identifier, mutex.identifier, busy.identifier]);
    await mutex.release();
    await busy.release();
  });
}
