/** Grants that replicas must have. The Redis of these tests has none. */

import { ok, rejects, same } from "../check.mjs";

export const replicas = {
  async "a grant that no replica acknowledges is refused, and nothing is held"(world) {
    const { locks, sent } = world.client({ fetch: waitingShortly });
    await each(world, locks, async (taker) => {
      await isRefused(world, taker, { replicas: 1 }, "not-replicated");
      // A caller that requires no replicas finds the lock free.
      same(await (await taker.tryAcquire({ replicas: undefined })).release(), "released");
    });
    ok(sent.some(({ input }) => input === `${world.url}/pipeline`), "Redis was asked");
  },

  async "a grant that enough replicas acknowledge is a lease"(world) {
    const { carry, waits } = withReplicas(world, 2);
    const { locks } = world.client({ fetch: carry });
    await each(world, locks, async (taker) => {
      const lease = await taker.acquire({ replicas: 2, leaseMs: 60_000 });
      same(await taker.tryAcquire({ replicas: 1 }), null, "held by another");
      same([await lease.isHeld(), await lease.release()], [true, "released"]);
      same(await taker.run({ replicas: 1 }, () => "done"), "done");
      await isRefused(world, taker, { replicas: 3 }, "not-replicated");
      same(await (await taker.tryAcquire()).release(), "released");
    });
    same([...waits].sort(), ["1", "2", "3"], "replicas that were waited for");
  },

  async "an acquisition with replicas is refused if the gateway cannot wait for replicas"(world) {
    const carry = async (input, init) => (isPipeline(input) ? new Response("Not Found", { status: 404 }) : fetch(input, init));
    const { locks } = world.client({ fetch: carry });
    await each(world, locks, async (taker) => {
      await isRefused(world, taker, { replicas: 1 }, "unsupported");
      same(await (await taker.tryAcquire()).release(), "released");
    });
  },
};

/** Runs the check with one object of each kind that can be held alone, all at once. */
async function each(world, locks, check) {
  const [semaphore, withIds] = [locks.semaphore(world.name()), locks.permitExpirableSemaphore(world.name())];
  await Promise.all([semaphore, withIds].map((object) => object.trySetPermits(1)));
  const kinds = ["lock", "spinLock", "fairLock", "fencedLock"].map((kind) => locks[kind](world.name()));
  const several = locks.multiLock([locks.lock(world.name()), locks.lock(world.name())]);
  const objects = [...kinds, several, locks.readWriteLock(world.name()).write, locks.groupLock(world.name(), ["a"])];
  await Promise.all([...objects.map((object) => taker(object)), taker(semaphore, 1), taker(withIds, 1)].map(check));
}

/** Passes the number of permits before the options, if there is one. */
function taker(object, ...first) {
  const call = (name) => (...rest) => object[name](...first, ...rest);
  return { acquire: call("acquire"), tryAcquire: call("tryAcquire"), run: call("run") };
}

async function isRefused(world, taker, options, reason) {
  await rejects(taker.tryAcquire({ ...options, leaseMs: 60_000 }), world.GatewayRefusedError, { reason });
  await rejects(taker.acquire({ ...options, waitMs: 60_000 }), world.GatewayRefusedError, { reason });
  const work = () => ok(false, "the work is not begun");
  await rejects(taker.run(options, work), world.GatewayRefusedError, { reason });
}

/**
 * Sends a request, and shortens the time for which Redis waits for replicas, which is part of the
 * ten seconds of an attempt.
 */
async function waitingShortly(input, init) {
  if (!isPipeline(input)) return fetch(input, init);
  const shortened = JSON.parse(init.body).map((command) => {
    if (command[0] !== "WAIT") return command;
    const [name, wanted, ms] = command;
    ok(Number(ms) >= 1_000 && Number(ms) < 10_000, `Redis is to wait for ${ms} ms`);
    return [name, wanted, "100"];
  });
  return fetch(input, { ...init, body: JSON.stringify(shortened) });
}

/**
 * Returns a fetch function that simulates `count` replicas, and the numbers of replicas in the
 * `WAIT` commands.
 */
function withReplicas(world, count) {
  const waits = new Set();
  const carry = async (input, init) => {
    if (!isPipeline(input)) return fetch(input, init);
    const [script, [command, wanted, ms]] = JSON.parse(init.body);
    same([command, Number(ms) > 0], ["WAIT", true], "what is behind the script");
    waits.add(wanted);
    const response = await fetch(`${world.url}/`, { ...init, body: JSON.stringify(script) });
    return Response.json([await response.json(), { result: count }]);
  };
  return { carry, waits };
}

function isPipeline(input) {
  return input.endsWith("/pipeline");
}
