/**
 * Notification of waiters: over a stream if runtime and gateway support streams, otherwise waiters
 * poll.
 */

import { ok, same, until } from "../check.mjs";

const LONG = { leaseMs: 60_000, waitMs: 120_000, maxRequests: 10_000 };

/** Returns a client that counts the responses to its requests. */
function countingClient(world, options) {
  const client = world.client({
    ...options,
    fetch: async (...call) => {
      const response = await fetch(...call);
      client.responses += 1;
      return response;
    },
  });
  client.responses = 0;
  client.isIdle = () => client.sent.length === client.responses;
  client.streams = () => client.sent.filter(({ init }) => init.headers.accept === "text/event-stream").length;
  return client;
}

/** Returns the number of subscriptions for the release of this lock. */
async function subscriptions({ url, token, dialect }, name) {
  const words = ["PUBSUB", "NUMSUB", `redisson_lock__channel:{${name}}`];
  if (dialect === "webdis") {
    const headers = { authorization: `Basic ${btoa(token)}` };
    const body = words.map(encodeURIComponent).join("/");
    const response = await fetch(`${url}/`, { method: "POST", headers, body });
    return Number((await response.json()).PUBSUB[1]);
  }
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${url}/`, { method: "POST", headers, body: JSON.stringify(words) });
  return Number((await response.json()).result[1]);
}

const next = async (events) => (await events.next()).value.type;

export const waking = {
  async "a release notifies the waiter, and no stream or timer remains"(world) {
    const resources = () => (globalThis.process?.getActiveResourcesInfo?.() ?? []).filter((kind) => kind === "Timeout").length;
    const [holder, waiter] = [countingClient(world), countingClient(world)];
    const name = world.name();
    const lease = await holder.locks.lock(name).acquire(LONG);
    const before = resources();
    const events = waiter.locks.events();
    const waits = waiter.locks.lock(name).acquire(LONG);
    const type = await next(events);
    same(type, "stream");
    await until(waiter.isIdle, "the waiter has tried, subscribed, and tried again");
    same(await subscriptions(world, name), 1, "subscriptions");
    const requested = waiter.sent.length;
    await lease.release();
    const own = await waits;
    // At most one request that acquires the lock, and one that was in flight.
    ok(waiter.sent.length <= requested + 2, `${waiter.sent.length - requested} requests`);
    await until(async () => (await subscriptions(world, name)) === 0, "the stream is closed");
    same(waiter.streams(), 1, "streams");
    await own.release();
    await until(() => resources() <= before, "no timer of the package remains");
  },

  async "waiters of one client share a subscription stream, and acquire one at a time"(world) {
    const [holder, waiter] = [countingClient(world), countingClient(world)];
    const name = world.name();
    const lease = await holder.locks.lock(name).acquire(LONG);
    const events = waiter.locks.events();
    const waits = [1, 2, 3].map(() => waiter.locks.lock(name).run(LONG, ({ token }) => token));
    same(await next(events), "stream");
    await lease.release();
    same(new Set(await Promise.all(waits)).size, 3, "tokens");
    const streams = world.isWorker ? [1, 2, 3] : [1];
    ok(streams.includes(waiter.streams()), `${waiter.streams()} streams`);
    await until(async () => (await subscriptions(world, name)) === 0, "the streams are closed");
  },

  async "onWait is called once, when the wait begins"(world) {
    const [holder, waiter] = [countingClient(world), countingClient(world)];
    const name = world.name();
    const begun = [];
    const wait = () => waiter.locks.lock(name).acquire({ ...LONG, onWait: () => begun.push(waiter.responses) });
    await (await wait()).release();
    same(begun, [], "calls for a free lock");
    const lease = await holder.locks.lock(name).acquire(LONG);
    const waits = wait();
    await until(() => begun.length > 0, "the wait begins");
    await until(async () => (await subscriptions(world, name)) === 1 && waiter.isIdle(), "the waiter has subscribed and tried again");
    await lease.release();
    await (await waits).release();
    same(begun.length, 1, "calls");
  },

  // S60.
  async "subscription streams leave connections for requests"(world) {
    const isPage = "location" in globalThis && !world.isWorker && !("Deno" in globalThis);
    const names = Array.from({ length: 8 }, () => world.name());
    const holder = world.client();
    const leases = await Promise.all(names.map((name) => holder.locks.lock(name).acquire(LONG)));
    // Each tab has its own client.
    const one = countingClient(world);
    const waits = names.map((name) => (isPage ? countingClient(world) : one).locks.lock(name).run(LONG, () => name));
    const openStreams = async () => (await Promise.all(names.map((name) => subscriptions(world, name)))).reduce((sum, count) => sum + count);
    const maxStreams = isPage ? 2 : world.isWorker ? 4 : 8;
    await until(async () => (await openStreams()) === maxStreams, "the maximum number of streams");
    await Promise.all(leases.map((lease) => lease.release()));
    same((await Promise.all(waits)).join(), names.join());
    await until(async () => (await openStreams()) === 0, "the streams are closed");
  },

  async "no subscription stream is opened if wakeups is off"(world) {
    const waiter = countingClient(world, { wakeups: "off" });
    const name = world.name();
    const lease = await world.client().locks.lock(name).acquire(LONG);
    const waits = waiter.locks.lock(name).acquire(LONG);
    same(await next(waiter.locks.events()), "polling");
    await lease.release();
    await (await waits).release();
    same(waiter.streams(), 0, "streams");
  },
};
