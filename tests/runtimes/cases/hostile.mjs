/**
 * Fetch functions and gateways that break their rules: each results in an error of the package, and
 * in nothing else.
 */

import { ok, rejection, rejects, same, until } from "../check.mjs";

const HTML_PAGE = "<!doctype html><title>502 Bad Gateway</title>";
const respondWith = (body, status = 200, headers = {}) => async () => new Response(body, { status, headers });
const throwing = () => { throw new TypeError("thrown on purpose"); };
const shaped = (fields) => async () => ({ status: 200, headers: new Headers(), body: null, ...fields });
const reading = (read) => shaped({ body: { getReader: () => ({ read }) } });
const never = () => new Promise(() => {});
const pause = () => new Promise((next) => setTimeout(next, 5));

/** No request was sent, so nothing has to be undone. */
const UNSENT = {
  "throws at once": throwing,
  "throws no error": () => { throw undefined; },
};

/** The request may have been executed, and its undoing is not confirmed either. */
const OUTCOME_UNKNOWN = {
  rejects: async () => throwing(),
  "rejects with undefined": () => Promise.reject(),
  "never settles": never,
  "is a thenable that never settles": () => ({ then() {} }),
  "is a thenable that throws": () => ({ then: throwing }),
  "returns undefined": () => undefined,
  "returns null": async () => null,
  "returns a number": async () => 200,
  "returns a text": async () => HTML_PAGE,
  "returns an empty object": async () => ({}),
  "returns a function": async () => () => {},
  "has no headers": shaped({ headers: undefined }),
  "has headers of another kind": shaped({ headers: { get: 5 } }),
  "has headers that throw": shaped({ headers: { get: throwing } }),
  "has a status that throws": async () => Object.defineProperty({}, "status", { get: throwing }),
  "has a status of another kind": shaped({ status: "OK" }),
  "has a status out of range": shaped({ status: -1e300 }),
  "has a body of another kind": shaped({ body: "{}" }),
  "has a body that throws": shaped({ body: { getReader: throwing } }),
  "reads without a promise": reading(() => 5),
  "reads nothing": reading(async () => undefined),
  "reads texts": reading(async () => ({ done: false, value: "text" })),
  "reads and throws": reading(throwing),
  "reads and never settles": reading(never),
  "reads a byte now and then": reading(async () => (await pause(), { done: false, value: new Uint8Array([0x20]) })),
  "reads without an end": reading(async () => ({ done: false, value: new Uint8Array(16_384) })),
  "responds with ten megabytes": respondWith("x".repeat(10_000_000)),
  "responds with an empty body": respondWith(""),
  "responds with HTML": respondWith(HTML_PAGE),
  "responds with HTML and 502": respondWith(HTML_PAGE, 502),
  "responds with half a JSON": respondWith('{"result":["0"'),
  "responds with JSON of another shape": respondWith('{"result":{"a":1}}'),
  "responds with null as result": respondWith('{"result":null}'),
  "responds to another request": respondWith('{"result":["0","0000000000000000","1","1","1795268812119001"]}'),
  "responds with bytes that are no text": respondWith(new Uint8Array([0xff, 0xfe, 0x7b])),
  "responds with deep nesting": respondWith("[".repeat(50_000)),
  "redirects": respondWith(null, 302, { location: "https://example.com/" }),
  "redirects as browsers show it": shaped({ status: 0, type: "opaqueredirect" }),
  "is failing": respondWith('{"error":"internal"}', 500),
};

/** The entries of `OUTCOME_UNKNOWN` that end only with the request timeout. */
const ENDLESS = new Set([
  "never settles", "is a thenable that never settles", "reads and never settles", "reads a byte now and then", "reads without an end",
]);

/** A temporary refusal of every request. */
const OUT_OF_MEMORY = respondWith(`{"error":"OOM command not allowed when used memory > 'maxmemory'."}`, 400);

/** A definite refusal. */
const REFUSED = {
  unauthorized: respondWith('{"error":"WRONGPASS invalid or missing auth token"}', 401),
  "wrong-type": respondWith('{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}', 400),
};

export const hostile = {
  async "a request that was not sent fails as unreachable, and nothing is held"(world) {
    await each(UNSENT, async (fetch) => {
      const { lock, sent } = lockWith(world, fetch);
      await rejects(lock.tryAcquire(), world.GatewayUnreachableError);
      ok(sent.length <= 3, "a few attempts");
      await rejects(lock.forceRelease(), world.GatewayUnreachableError);
    });
  },

  // S2, S15, S49, S52, S53, S54.
  async "a request that may have been executed fails as outcome unknown, with the time until the lock is free"(world) {
    await each(OUTCOME_UNKNOWN, async (fetch, name) => {
      const { lock, sent } = lockWith(world, fetch, ENDLESS.has(name) ? SHORT_TIMEOUT : {});
      // An address that has returned only web pages is not a gateway's.
      if (name === "responds with HTML") return void (await rejects(lock.tryAcquire(), world.GatewayUnreachableError));
      const error = await rejects(lock.tryAcquire(), world.OutcomeUnknownError);
      ok(Number.isSafeInteger(error.freeInMs) && error.freeInMs >= 30_000, "the time until it is free");
      ok(sent.length <= 6, "a few attempts, and a few to undo them");
      const status = name.startsWith("responds with HTML") ? (name.endsWith("502") ? 502 : 200) : name === "is failing" ? 500 : undefined;
      const unreachable = await rejects(lock.inspect(), world.GatewayUnreachableError);
      if (status) same([error.status, unreachable.status], [status, status], name);
      if (name === "rejects") same(["status" in error, "status" in unreachable], [false, false]);
    });
  },

  async "a web page in place of a gateway's response leaves the outcome unknown"(world) {
    const page = respondWith(HTML_PAGE);
    // The first request may have been executed, or may be executed later.
    const before = {
      rejects: async () => throwing(),
      "does not know the script": respondWith('{"error":"NOSCRIPT No matching script."}'),
      "is loading": respondWith('{"error":"LOADING Redis is loading the dataset in memory"}'),
    };
    await each(before, async (fetch) => {
      let requested = 0;
      const { lock } = lockWith(world, () => (requested++ === 0 ? fetch() : page()));
      await rejects(lock.tryAcquire(), world.OutcomeUnknownError);
    });
  },

  async "an address without a gateway is refused at once, or by acquire when its wait times out"(world) {
    await each({ "has no such path": respondWith(HTML_PAGE, 404), "has no POST": respondWith("", 405) }, async (fetch) => {
      const { lock, sent } = lockWith(world, fetch);
      await rejects(lock.tryAcquire(), world.GatewayRefusedError, { reason: "not-a-gateway" });
      ok(sent.length <= 2, "it is not retried");
      await rejects(lock.acquire({ waitMs: 50 }), world.GatewayRefusedError, { reason: "not-a-gateway" });
    });
  },

  // S46, S66, S69.
  async "a definite refusal of the gateway is not retried"(world) {
    await each(REFUSED, async (fetch, reason) => {
      const { lock, sent } = lockWith(world, fetch);
      const { message } = await rejects(lock.acquire(), world.GatewayRefusedError, { reason });
      ok(message.includes("nothing is held"), message);
      same(sent.length, 1, "requests");
      await rejects(lock.inspect(), world.GatewayRefusedError, { reason });
      await rejects(lock.forceRelease(), world.GatewayRefusedError, { reason });
    });
  },

  async "a temporary refusal is cancelled, and its outcome is unknown if the cancellation is refused too"(world) {
    const { lock } = lockWith(world, OUT_OF_MEMORY);
    const error = await rejects(lock.tryAcquire(), world.OutcomeUnknownError);
    ok(Number.isSafeInteger(error.freeInMs), "the time until it is free");
    await rejects(lock.inspect(), world.GatewayRefusedError, { reason: "out-of-memory" });
  },

  async "acquire and run reject when their wait times out although every request fails"(world) {
    const calls = [(lock) => lock.acquire({ waitMs: 50 }), (lock) => lock.run({ waitMs: 50 }, () => ok(false, "the work does not start"))];
    await each({ rejects: OUTCOME_UNKNOWN.rejects, throws: throwing, html: OUTCOME_UNKNOWN["responds with HTML"] }, async (fetch, name) => {
      const Class = name !== "rejects" ? world.GatewayUnreachableError : world.OutcomeUnknownError;
      const isRejected = async (call) => {
        const error = await rejection(call(lockWith(world, fetch).lock));
        // On a slow machine the wait may end while a page is read: its request has no response yet.
        if (name === "html" && error instanceof world.OutcomeUnknownError) return false;
        return rejects(Promise.reject(error), Class);
      };
      for (const call of calls) await until(() => isRejected(call), "a wait that ends between two requests");
    });
  },

  // S3.
  async "each operation succeeds by retries after two failed requests"(world) {
    await each(OUTCOME_UNKNOWN, async (failingFetch, name) => {
      let requestsToFail = 2;
      const failing = (...call) => (requestsToFail-- > 0 ? failingFetch(...call) : fetch(...call));
      // An endless response ends with the request timeout. If a slow machine needs longer for a
      // real one, that lock may be held, so another one is tried, with more time.
      const acquire = async () => {
        const isShort = ENDLESS.has(name) && requestsToFail > 0;
        const lock = world.lock({ fetch: failing, requestTimeoutMs: isShort ? 3_000 : 60_000 });
        return { lock, lease: await lock.tryAcquire(LONG_LEASE) };
      };
      const { lock, lease } = await retryWhileSlow(world, acquire);
      const { lastToken } = await retryWhileSlow(world, () => lock.inspect());
      same([lastToken, await retryWhileSlow(world, () => lease.release())], [lease.token, "released"]);
    });
  },

  async "a release without a response reports how long the hold may last, and can be retried"(world) {
    await each({ rejects: OUTCOME_UNKNOWN.rejects, html: OUTCOME_UNKNOWN["responds with HTML"], throws: throwing }, async (failingFetch) => {
      let failing = false;
      const lock = world.lock({ fetch: (...call) => (failing ? failingFetch(...call) : fetch(...call)) });
      const lease = await lock.acquire(LONG_LEASE);
      failing = true;
      const error = await rejects(lease.release(), world.OutcomeUnknownError);
      ok(error.freeInMs >= 30_000, "the time until it is free");
      failing = false;
      same([await lease.release(), (await lock.inspect()).locked], ["released", false]);
    });
  },

  async "run returns the result of work within its lease although the release has no response"(world) {
    let failing = false;
    const lock = world.lock({ fetch: (...call) => (failing ? throwing() : fetch(...call)) });
    const done = await lock.run(LONG_LEASE, () => {
      failing = true;
      return "done";
    });
    same(done, "done");
    failing = false;
    same(await lock.forceRelease(), true);
  },

  // S84.
  async "the package still works after all hostile responses"(world) {
    same(await world.lock().run((lease) => lease.isHeld()), true);
  },
};

/** Checks all entries at once, since most of them wait; an error names its entry. */
async function each(table, check) {
  const one = ([name, fetch]) =>
    check(fetch, name).catch((error) => {
      throw new Error(`a fetch that ${name}: ${error.message}`, { cause: error });
    });
  await Promise.all(Object.entries(table).map(one));
}

/**
 * Repeats a call until the real gateway has responded within the request timeout, which is short
 * for a machine under load.
 */
function retryWhileSlow(world, call) {
  const { GatewayTooSlowError, GatewayUnreachableError, OutcomeUnknownError } = world;
  const isSlow = (error) => [GatewayTooSlowError, GatewayUnreachableError, OutcomeUnknownError].some((Class) => error instanceof Class);
  const unlessSlow = (error) => {
    if (!isSlow(error)) throw error;
  };
  return until(() => call().catch(unlessSlow), "a response in time");
}

/** Outlasts the case on any machine: a lease that is lost is another case. */
const LONG_LEASE = { leaseMs: 3_600_000 };

/** For attempts that end only with their time. All others end at once, on a busy machine too. */
const SHORT_TIMEOUT = { requestTimeoutMs: 50 };

function lockWith(world, fetch, options) {
  const { locks, sent } = world.client({ fetch, ...options });
  return { lock: locks.lock(world.name()), sent };
}
