/** The requests of the package: as few as possible, and in exactly one form. */

import { ok, rejects, same, until } from "../check.mjs";
import { advanceTime, crossingsOf } from "../watch.mjs";

/** The options of a request beside method, headers and body; no runtime supports all of them. */
const INIT = ["body", "cache", "credentials", "headers", "method", "redirect", "referrerPolicy", "signal"];

export const requests = {
  async "a free lock costs one request to acquire and one to release"(world) {
    const { locks, sent } = world.client();
    await locks.lock(world.name()).run(() => undefined);
    const before = sent.length;
    const lease = await locks.lock(world.name()).acquire();
    same(sent.length, before + 1, "requests");
    await lease.release();
    same(sent.length, before + 2, "requests");
  },

  async "an acquisition and a release make at most six calls between JavaScript and WebAssembly each"(world) {
    const lock = world.lock();
    await (await lock.acquire()).release();
    // The collection of earlier objects also crosses it, so the least of some pairs counts.
    const counts = { acquire: [], release: [] };
    for (let pair = 0; pair < 10; pair += 1) {
      let lease;
      counts.acquire.push(await crossingsOf(async () => (lease = await lock.acquire())));
      counts.release.push(await crossingsOf(() => lease.release()));
    }
    for (const [method, all] of Object.entries(counts)) {
      const least = Math.min(...all);
      ok(least >= 2 && least <= 6, `${method}: ${all}`);
    }
  },

  // S16, S54.
  async "a request is a POST with only the required headers and follows no redirect"(world) {
    const { locks, sent } = world.client();
    await locks.lock(world.name()).run((lease) => lease.isHeld());
    await locks.lock(world.name()).forceRelease();
    for (const { input, init } of sent) {
      same(input, `${world.url}/`);
      same([init.method, init.redirect], ["POST", "manual"]);
      // A case below checks the sync token of each request.
      const { "upstash-sync-token": _syncToken, ...headers } = init.headers;
      same(headers, { authorization: `Bearer ${world.token}`, "content-type": "application/json" });
      ok(init.signal instanceof AbortSignal, "a signal ends it");
      same(Object.keys(init).filter((key) => !INIT.includes(key)), [], "further options");
      same([init.cache ?? "no-store", init.credentials ?? "omit"], ["no-store", "omit"]);
      const command = JSON.parse(init.body);
      ok(command.every((part) => typeof part === "string"), "every argument is a string");
      ok(["EVAL", "EVALSHA"].includes(command[0]), command[0]);
    }
  },

  async "calls of one event-loop turn share one request, and each has its own response"(world) {
    const { locks, sent } = world.client();
    const all = Array.from({ length: 10 }, () => locks.lock(world.name()));
    const held = await all[3].acquire();
    // Redis has the script by now.
    const before = sent.length;
    const leases = await Promise.all(all.map((lock) => lock.tryAcquire()));
    same(sent.length, before + 1, "requests");
    const { input, init } = sent.at(-1);
    same([input, JSON.parse(init.body).length], [`${world.url}/pipeline`, 10]);
    same(leases.map((lease) => lease?.name ?? null), all.map(({ name }, number) => (number === 3 ? null : name)));
    const states = await Promise.all(all.map((lock) => lock.inspect()));
    same(states.map(({ lastToken }) => lastToken), leases.map((lease) => (lease ?? held).token));
    const ends = await Promise.all([...leases.filter(Boolean), held].map((lease) => lease.release()));
    same([new Set(ends).size, ends.length, sent.length], [1, 10, before + 3]);
  },

  async "renewals that are due together share one request"(world) {
    const { locks, sent } = world.client();
    const leases = await Promise.all(Array.from({ length: 20 }, () => locks.lock(world.name()).acquire()));
    const before = sent.length;
    advanceTime(10_000);
    await until(() => leases.every((lease) => lease.remaining() > 25_000), "all are renewed");
    const renewals = sent.slice(before);
    same(new Set(renewals.map(({ input }) => input)).size, 1, "addresses");
    ok(renewals.length <= 2, `${renewals.length} requests`);
    await Promise.all(leases.map((lease) => lease.release()));
  },

  async "a gateway without pipelines is detected once, and each later call is a request of its own"(world) {
    const refusing = (input, init) => (input.endsWith("/pipeline") ? new Response("Not Found", { status: 404 }) : fetch(input, init));
    const { locks, sent } = world.client({ fetch: refusing });
    const inspect = () => Promise.all(Array.from({ length: 5 }, () => locks.lock(world.name()).inspect()));
    await inspect();
    const requested = sent.length;
    same(sent.filter(({ input }) => input.endsWith("/pipeline")).length, 1);
    await inspect();
    same(sent.length, requested + 5, "requests");
  },

  async "a call aborted during its request leaves the other calls intact"(world) {
    let onRequest;
    const begun = new Promise((resolve) => (onRequest = resolve));
    const signals = [];
    const slow = async (input, init) => {
      signals.push(init.signal);
      onRequest();
      return fetch(input, init);
    };
    const { locks } = world.client({ fetch: slow });
    const client = new AbortController();
    const aborted = locks.lock(world.name()).acquire({ signal: client.signal }).then(() => "acquired", (error) => error.code ?? error.name);
    const others = [1, 2, 3].map(() => locks.lock(world.name()).tryAcquire());
    await begun;
    client.abort();
    const leases = await Promise.all(others);
    ok(leases.every(Boolean) && !signals[0].aborted, "the other calls have their responses");
    await aborted;
    await Promise.all(leases.map((lease) => lease.release()));
  },

  async "fetch is called without a this, and the global fetch is read at each request"(world) {
    let receiver = "not called";
    const fetchOf = function (input, init) {
      receiver = this;
      return fetch(input, init);
    };
    await world.edgelatch.connect({ url: world.url, token: world.token, fetch: fetchOf }).lock(world.name()).inspect();
    same(receiver, undefined);

    const lock = world.edgelatch.connect({ url: world.url, token: world.token }).lock(world.name());
    const { fetch: original } = globalThis;
    let calls = 0;
    globalThis.fetch = (...values) => {
      calls += 1;
      return original(...values);
    };
    try {
      await lock.inspect();
    } finally {
      globalThis.fetch = original;
    }
    await lock.inspect();
    ok(calls >= 1, "the replaced fetch was called");
  },

  async "an address may have a path, a final slash and surrounding white space"(world) {
    const seen = [];
    const fetchAt = (input, init) => {
      seen.push(input);
      return fetch(`${world.url}/`, init);
    };
    for (const url of [" https://example.com/redis/ ", "https://example.com/redis", "http://localhost:1/redis//".slice(0, -1)]) {
      const locks = world.edgelatch.connect({ url, token: ` ${world.token}\n`, fetch: fetchAt });
      await locks.lock(world.name()).inspect();
    }
    const distinct = [...new Set(seen)];
    same(distinct, ["https://example.com/redis/", "http://localhost:1/redis/"]);
  },

  async "the next request carries the gateway's sync token"(world) {
    const tokens = [];
    const withSyncToken = async (input, init) => {
      const { "upstash-sync-token": syncToken, ...headers } = init.headers;
      tokens.push(syncToken);
      const response = await fetch(input, { ...init, headers });
      return new Response(response.body, { status: response.status, headers: { "upstash-sync-token": `s${tokens.length}` } });
    };
    const lock = world.lock({ fetch: withSyncToken });
    await lock.inspect();
    await lock.inspect();
    same(tokens.slice(0, 3), [undefined, "s1", "s2"].slice(0, tokens.length));
  },

  // S52.
  async "a request timeout ends the attempt and aborts its fetch"(world) {
    const signals = [];
    const never = (_input, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const lock = world.lock({ fetch: never, requestTimeoutMs: 50 });
    await rejects(lock.inspect(), world.GatewayUnreachableError);
    ok(signals.length > 1 && signals.every(({ aborted }) => aborted), "every attempt was ended");
  },

  async "a request timeout is reported as the error's cause"(world) {
    const never = (_input, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const { cause, host } = await rejects(world.lock({ fetch: never, requestTimeoutMs: 50 }).inspect(), world.GatewayUnreachableError);
    same([cause.name, host], ["TimeoutError", new URL(world.url).host]);
    ok(cause.message.includes("request timeout"), cause.message);
  },

  async "the error of a broken request is the cause until the gateway responds again"(world) {
    let broken = new TypeError("the connection broke");
    const breaking = (...call) => (broken ? Promise.reject(broken) : fetch(...call));
    const lock = world.lock({ fetch: breaking });
    ok((await rejects(lock.inspect(), world.GatewayUnreachableError)).cause === broken, "the cause");
    broken = undefined;
    await lock.inspect();
    const { locks } = world.client({ fetch: async () => new Response("half a resp") });
    const garbled = await rejects(locks.lock(world.name()).inspect(), world.GatewayUnreachableError, { status: 200 });
    ok(!("cause" in garbled), "another request's error is no cause");
  },

  async "the error of a broken stream is no cause, since its address has the lock's name"(world) {
    // Pages and Workers have fewer streams.
    if (!globalThis.process?.versions?.node) return;
    const [name, inspected] = [world.name(), world.name()];
    const holder = await world.client().locks.lock(name).acquire();
    let breakStream;
    let attempts = 0;
    const send = async (input, init) => {
      if (init.headers.accept) return new Promise((_, reject) => (breakStream ??= () => reject(new TypeError(`cannot fetch ${input}`))));
      if (!init.body.includes(inspected)) return fetch(input, init);
      // The head arrives, then the stream breaks, then the body is not a response.
      const isLast = ++attempts === 3;
      const body = new ReadableStream({
        async pull(controller) {
          if (isLast) breakStream();
          await new Promise((next) => setTimeout(next));
          controller.enqueue(new TextEncoder().encode("half a resp"));
          controller.close();
        },
      });
      return new Response(body);
    };
    const { locks } = world.client({ fetch: send, redactNames: true });
    const leaving = new AbortController();
    const waits = locks.lock(name).acquire({ waitMs: "until-aborted", signal: leaving.signal }).catch((reason) => reason);
    await until(() => breakStream, "a stream");
    const error = await rejects(locks.lock(inspected).inspect(), world.GatewayUnreachableError);
    same([attempts, "cause" in error], [3, false], "attempts, and whether there is a cause");
    leaving.abort("enough");
    same([await waits, await holder.release()], ["enough", "released"]);
  },

  // S1, S12.
  async "a request whose response is lost is retried, and the lock is granted once"(world) {
    let responsesToLose = 2;
    const losing = async (input, init) => {
      const response = await fetch(input, init);
      if (response.ok && responsesToLose > 0) {
        responsesToLose -= 1;
        throw new TypeError("the connection broke");
      }
      return response;
    };
    const lock = world.lock({ fetch: losing });
    const lease = await lock.tryAcquire();
    const state = await lock.inspect();
    same([state.holdCount, state.lastToken], [1, lease.token]);
    responsesToLose = 1;
    same(await lease.release(), "released");
  },

  async "a cancelled change rejects as not executed after all its attempts failed"(world) {
    let requestsToLose = 0;
    const losing = async (...call) => {
      if (requestsToLose-- > 0) throw new TypeError("the connection broke");
      return fetch(...call);
    };
    const { locks } = world.client({ fetch: losing });
    const [lock, semaphore] = [locks.lock(world.name()), locks.semaphore(world.name())];
    const lease = await lock.acquire();
    for (const change of [() => lock.forceRelease(), () => semaphore.addPermits(2)]) {
      // Every attempt fails; after that only the cancellation reaches the gateway.
      requestsToLose = 3;
      await rejects(change(), world.NotExecutedError);
    }
    same([await lease.isHeld(), await semaphore.availablePermits()], [true, 0]);
    same([await lock.forceRelease(), await semaphore.addPermits(2)], [true, 2]);
  },
};
