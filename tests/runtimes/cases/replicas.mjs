/** Grants that replicas must have. The Redis of these tests has none. */

import { ok, rejects, same } from "../check.mjs";

export const replicas = {
  async "a grant that no replica acknowledges is refused, and nothing is held"(world) {
    const { locks, sent } = world.client({ fetch: fetchWithShortWait });
    await each(world, locks, async (acquirer) => {
      await isRefused(world, acquirer, { replicas: 1 }, "not-replicated");
      // A caller that requires no replicas finds the lock free.
      same(await (await acquirer.tryAcquire({ replicas: undefined })).release(), "released");
    });
    ok(sent.some(({ input }) => input === `${world.url}/pipeline`), "a pipeline with WAIT was sent");
  },

  async "a grant that enough replicas acknowledge is a lease"(world) {
    const { send, waits } = withReplicas(world, 2);
    const { locks } = world.client({ fetch: send });
    await each(world, locks, async (acquirer) => {
      const lease = await acquirer.acquire({ replicas: 2, leaseMs: 60_000 });
      same(await acquirer.tryAcquire({ replicas: 1 }), null, "held by another client");
      same([await lease.isHeld(), await lease.release()], [true, "released"]);
      same(await acquirer.run({ replicas: 1 }, () => "done"), "done");
      await isRefused(world, acquirer, { replicas: 3 }, "not-replicated");
      same(await (await acquirer.tryAcquire()).release(), "released");
    });
    same([...waits].sort(), ["1", "2", "3"], "replicas that were waited for");
  },

  async "an acquisition with replicas is refused if the gateway cannot wait for replicas"(world) {
    const send = async (input, init) => (isPipeline(input) ? new Response("Not Found", { status: 404 }) : fetch(input, init));
    const { locks } = world.client({ fetch: send });
    await each(world, locks, async (acquirer) => {
      await isRefused(world, acquirer, { replicas: 1 }, "unsupported");
      same(await (await acquirer.tryAcquire()).release(), "released");
    });
  },
};

/** Runs the check with one object of each kind that can be held alone, all at once. */
async function each(world, locks, check) {
  const [semaphore, withIds] = [locks.semaphore(world.name()), locks.permitExpirableSemaphore(world.name())];
  await Promise.all([semaphore, withIds].map((object) => object.trySetPermits(1)));
  const kinds = ["lock", "spinLock", "fairLock", "fencedLock"].map((kind) => locks[kind](world.name()));
  const multiLock = locks.multiLock([locks.lock(world.name()), locks.lock(world.name())]);
  const objects = [...kinds, multiLock, locks.readWriteLock(world.name()).write, locks.groupLock(world.name(), ["a"])];
  await Promise.all([...objects.map((object) => acquirer(object)), acquirer(semaphore, 1), acquirer(withIds, 1)].map(check));
}

/** Passes the number of permits before the options, if there is one. */
function acquirer(object, ...first) {
  const call = (name) => (...rest) => object[name](...first, ...rest);
  return { acquire: call("acquire"), tryAcquire: call("tryAcquire"), run: call("run") };
}

async function isRefused(world, acquirer, options, reason) {
  await rejects(acquirer.tryAcquire({ ...options, leaseMs: 60_000 }), world.GatewayRefusedError, { reason });
  await rejects(acquirer.acquire({ ...options, waitMs: 60_000 }), world.GatewayRefusedError, { reason });
  const work = () => ok(false, "the work does not start");
  await rejects(acquirer.run(options, work), world.GatewayRefusedError, { reason });
}

/**
 * Sends a request, and shortens the time for which Redis waits for replicas, which is part of the
 * ten seconds of an attempt.
 */
async function fetchWithShortWait(input, init) {
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
  const send = async (input, init) => {
    if (!isPipeline(input)) return fetch(input, init);
    const [script, [command, wanted, ms]] = JSON.parse(init.body);
    same([command, Number(ms) > 0], ["WAIT", true], "the command after the script");
    waits.add(wanted);
    const response = await fetch(`${world.url}/`, { ...init, body: JSON.stringify(script) });
    return Response.json([await response.json(), { result: count }]);
  };
  return { send, waits };
}

function isPipeline(input) {
  return input.endsWith("/pipeline");
}
