/** Invalid input: the error names it and the accepted values, and nothing is sent. */

import { ok, rejection, rejects, same, throws } from "../check.mjs";
import { PLAIN_ADDRESSES } from "./addresses.mjs";

const NOT_WHOLE = [-1, 0, 1.5, NaN, Infinity, -Infinity, 1e300, "1000", "", null, true, [], {}, 1000n, Symbol("x"), () => 1000];
const NOT_TEXT = ["", null, 5, true, [], {}, Symbol("x"), new String("a"), () => "a"];

const BAD = {
  leaseMs: [...NOT_WHOLE, 99, 99.999, 86_400_001],
  waitMs: [...NOT_WHOLE, 0.5, 86_400_001, "until-aborted", "for-ever"],
  maxRequests: [...NOT_WHOLE, 2, 10_001],
  replicas: [...NOT_WHOLE, 9, 257, 2 ** 32 + 1],
  requestTimeoutMs: [...NOT_WHOLE, 49, 60_001],
  signal: [null, 5, true, "abort", {}, [], () => {}, { aborted: true }, new AbortController()],
  onWait: [null, 5, true, "log", {}, []],
  name: [
    undefined, ...NOT_TEXT, "a\nb", "\0", "\u007f", "\u0085", "n".repeat(513), "\u00e9".repeat(257), "a{b", "}{", "{}", "{a}{b}",
    "redisson_x", "el:x", "\ud800", "a\udc00b",
  ],
  url: [
    undefined, ...NOT_TEXT, "example.com", "ftp://example.com", "https://", "https://user:pw@example.com", "https://example.com?x",
    "https://example.com/#x", "https://exa mple.com", "https://example.com:0", "https://example.com:65536", "http://example.com",
    "https://example.com/../x", "//example.com", "https://\ud800.com", new URL("https://example.com"), "https://1.2.3.4.5",
    "https://example.256", "http://127.0.0.09",
  ],
  token: [undefined, ...NOT_TEXT, " ", "two words", "line\nbreak", "\u00e9", "\0", "t".repeat(4097)],
  fetch: [null, 5, "fetch", {}, []],
  allowHttp: [null, 1, "true", {}],
  keyLocking: [null, true, "yes", "ON", ""],
  publish: [null, true, "none", "Plain", ""],
  wakeups: [null, true, "on", "Auto", ""],
  dialect: [null, true, "redis", "Webdis", ""],
};

export const options = {
  // S30.
  async "options of the wrong type or out of range are rejected by their name"(world) {
    const { locks, sent } = world.client();
    const [lock, owned] = [locks.lock(world.name()), locks.owner().lock(world.name())];
    const work = () => ok(false, "the work does not start");
    for (const { acquire, run } of [lock, owned].map((of) => ({ acquire: (o) => of.acquire(o), run: (o) => of.run(o, work) }))) {
      for (const option of ["leaseMs", "waitMs", "maxRequests", "replicas", "signal", "onWait"]) {
        for (const value of BAD[option]) {
          explains(await rejects(acquire({ [option]: value }), world.InvalidOptionError, { option }));
          await rejects(run({ [option]: value }), world.InvalidOptionError, { option });
        }
      }
    }
    for (const option of ["leaseMs", "replicas", "signal"]) {
      for (const value of BAD[option]) await rejects(lock.tryAcquire({ [option]: value }), world.InvalidOptionError, { option });
    }
    same(sent.length, 0, "requests");
    same((await lock.inspect()).locked, false);
  },

  // S30.
  async "a renewal with an invalid leaseMs sends no request and keeps the lease"(world) {
    const { locks, sent } = world.client();
    const lease = await locks.lock(world.name()).acquire({ leaseMs: 600_000 });
    const before = sent.length;
    for (const leaseMs of BAD.leaseMs) await rejects(lease.renew({ leaseMs }), world.InvalidOptionError, { option: "leaseMs" });
    for (const value of [null, 5, "x", true]) await rejects(lease.renew(value), world.InvalidOptionError, { option: "options" });
    same([sent.length, await lease.isHeld(), await lease.release()], [before, true, "released"]);
  },

  async "options that are not an object are rejected"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    for (const value of [null, 5, "x", true, 1n, Symbol("x")]) {
      await rejects(lock.acquire(value), world.InvalidOptionError, { option: "options" });
      await rejects(lock.tryAcquire(value), world.InvalidOptionError, { option: "options" });
      await rejects(lock.run(value, () => {}), world.InvalidOptionError, { option: "options" });
      throws(() => world.edgelatch.connect(value), world.InvalidOptionError, { option: "options" });
    }
    throws(() => world.edgelatch.connect(), world.InvalidOptionError, { option: "options" });
    for (const values of [[], [{}], [{}, null], [undefined, "work"], [{}, {}]]) {
      await rejects(lock.run(...values), world.InvalidOptionError, { option: "work" });
    }
    same(sent.length, 0, "requests");
  },

  "invalid client options and lock names are rejected synchronously"(world) {
    const { locks } = world.client();
    for (const name of BAD.name) {
      explains(throws(() => locks.lock(name), world.InvalidOptionError, { option: "name" }));
      throws(() => locks.owner().lock(name), world.InvalidOptionError, { option: "name" });
    }
    const good = { url: world.url, token: world.token };
    for (const option of ["url", "token", "fetch", "allowHttp", "keyLocking", "publish", "dialect", "wakeups", "requestTimeoutMs"]) {
      for (const value of BAD[option]) {
        explains(throws(() => world.edgelatch.connect({ ...good, [option]: value }), world.InvalidOptionError, { option }));
      }
    }
  },

  "an address without TLS is accepted on loopback, and elsewhere only with allowHttp"(world) {
    const { connect } = world.edgelatch;
    for (const [url, isLoopback] of PLAIN_ADDRESSES) {
      for (const text of [url, ` ${url}\n`]) {
        // No runtime could send a request to `127.0.0.256`.
        if (URL.canParse(url)) connect({ url: text, token: "t", allowHttp: true });
        if (isLoopback) connect({ url: text, token: "t" });
        else ok(throws(() => connect({ url: text, token: "t" }), world.InvalidOptionError, { option: "url" }).message.includes("allowHttp"), url);
      }
    }
  },

  async "the error of an option's getter is rethrown unchanged"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    const mine = new Error("mine");
    const throwing = (option) => Object.defineProperty({}, option, { get: () => { throw mine; } });
    for (const option of ["leaseMs", "waitMs", "maxRequests", "replicas", "signal", "onWait"]) {
      ok((await rejection(lock.acquire(throwing(option)))) === mine, option);
    }
    ok((await rejection((async () => world.edgelatch.connect(throwing("url")))())) === mine, "url");
    same(sent.length, 0, "requests");
  },

  async "an unknown option is rejected with its name and the intended one"(world) {
    const { locks, sent } = world.client();
    const [lock, guard] = [locks.lock(world.name()), locks.guard(world.name())];
    const wrong = async (call, option, hint) => {
      const error = await rejects((async () => call())(), world.InvalidOptionError, { option });
      ok(error.message.includes(hint), `${error.message}: expected ${hint}`);
    };
    await wrong(() => lock.acquire({ ttl: 5_000 }), "ttl", "leaseMs");
    await wrong(() => lock.acquire({ timeout: 5_000 }), "timeout", "waitMs");
    await wrong(() => lock.acquire({ retries: 3 }), "retries", "maxRequests");
    await wrong(() => lock.tryAcquire({ waitMs: 1_000 }), "waitMs", "acquire");
    await wrong(() => lock.tryAcquire({ onWait: () => {} }), "onWait", "acquire");
    await wrong(() => lock.acquire({ waitMs: 0 }), "waitMs", "tryAcquire");
    await wrong(() => lock.run(() => 1, { waitMs: 1_000 }), "options", "run(options, work)");
    await wrong(() => locks.lock("a", { leaseMs: 5_000 }), "leaseMs", "no options");
    await wrong(() => locks.fairLock("a", { lifetimeMs: 5_000 }), "lifetimeMs", "lifeMs");
    await wrong(() => guard.set({}, "value"), "lease", "a lease");
    const [latch, permits, ids] = [locks.countDownLatch("a"), locks.semaphore("a"), locks.permitExpirableSemaphore("a")];
    await wrong(() => latch.wait({ leaseMs: 5_000 }), "leaseMs", "waitMs, maxRequests, onWait, signal");
    await wrong(() => latch.wait({ replicas: 1 }), "replicas", "waitMs, maxRequests, onWait, signal");
    await wrong(() => latch.wait({ timeout: 5_000 }), "timeout", "waitMs");
    await wrong(() => ids.trySetPermits(1, { lifeMs: 5_000 }), "lifeMs", "no options");
    await wrong(() => permits.trySetPermits(1, { leaseMs: 5_000 }), "leaseMs", "lifeMs");
    await wrong(() => permits.release(1, { leaseMs: 5_000 }), "leaseMs", "no options");
    await wrong(() => permits.acquire(1, {}, { waitMs: 5_000 }), "waitMs", "no options");
    await wrong(() => lock.acquire({}, { waitMs: 5_000 }), "waitMs", "no options");
    await wrong(() => lock.inspect({ signal: 5 }), "signal", "no options");
    await wrong(() => lock.forceRelease({ waitMs: 5_000 }), "waitMs", "no options");
    await wrong(() => locks.owner({ name: "me" }), "name", "no options");
    await wrong(() => locks.multiLock([lock], { rejoinDelayMs: 5_000 }), "rejoinDelayMs", "no options");
    await wrong(() => locks.events({ signal: 5 }), "signal", "no options");
    await wrong(() => guard.newest({ name: "a" }), "name", "no options");
    const client = (options) => () => world.edgelatch.connect({ url: "https://example.com", token: "t", ...options });
    await wrong(client({ timeout: 1_000 }), "timeout", "requestTimeoutMs");
    await wrong(client({ url: undefined }), "url", "environment variable");
    await wrong(client({ token: undefined }), "token", "environment variable");
    for (const url of ["redis://localhost:6379", " rediss://default:secret@example.com:6379", "valkey://example.com"]) {
      await wrong(client({ url }), "url", "REST URL, or run edgelatch-gateway");
    }
    await wrong(client({ url: "" }), "url", "begins with https://");
    await wrong(client({ url: "'https://example.com'" }), "url", "without quotes");
    await wrong(client({ url: "https://exam ple.com" }), "url", "white space");
    await wrong(client({ url: "https://default:secret@example.com" }), "url", "pass the token as `token`");
    await wrong(client({ url: "https://example.com/?_token=secret" }), "url", "pass the token as `token`");
    await wrong(client({ url: "https://example.com/get/foo" }), "url", "without the path of a command");
    await wrong(client({ token: "" }), "token", "REST token");
    await wrong(client({ token: "Bearer t" }), "token", "without `Bearer`");
    await wrong(client({ url: "http://gateway.internal" }), "url", "allowHttp");
    same(sent.length, 0, "requests");
  },

  async "errors name the lock and the host, but no lock if redactNames is set"(world) {
    const name = world.name();
    const gone = async (options) => {
      const lock = world.client(options).locks.lock(name);
      const lease = await lock.acquire();
      await lock.forceRelease();
      return rejects(lease.renew(), world.LeaseLostError, { reason: "gone" });
    };
    const { host } = new URL(world.url);
    const error = await gone({});
    same([error.lock, error.host], [name, host]);
    ok(error.message.includes(JSON.stringify(name)) && error.message.includes(host), error.message);
    const redacted = await gone({ redactNames: true });
    same([redacted.lock, redacted.host], [undefined, host]);
    ok(![redacted.message, redacted.stack].join().includes(name), redacted.message);
  },

  async "a refusal has the status of the response, and none if Redis' error came with status 200"(world) {
    const refuse = (status) => async () => Response.json({ error: "WRONGPASS no" }, { status });
    for (const [responseStatus, status] of [[401, 401], [403, 403], [200, undefined]]) {
      const lock = world.client({ fetch: refuse(responseStatus) }).locks.lock(world.name());
      const error = await rejects(lock.tryAcquire(), world.GatewayRefusedError, { reason: "unauthorized" });
      same([error.status, "status" in error], [status, status !== undefined], responseStatus);
    }
    const { locks } = world.client({ fetch: async () => new Response("Not Found", { status: 404 }) });
    await rejects(locks.lock(world.name()).tryAcquire(), world.GatewayRefusedError, { reason: "not-a-gateway", status: 404 });
  },

  async "a multi-lock has the name of its first lock, and its errors name all locks"(world) {
    const [first, second] = [`${world.name()}:a`, `${world.name()}:b`].sort();
    const { locks } = world.client();
    const both = locks.multiLock([locks.lock(second), locks.lock(first)]);
    const lease = await both.acquire();
    same([both.name, lease.name, lease.tokenOf(first)], [first, first, lease.token]);
    await locks.lock(second).forceRelease();
    const error = await rejects(lease.renew(), world.LeaseLostError, { reason: "gone" });
    same(error.lock, `${second}, ${first}`);
  },

  async "the methods of a lease reject unknown options and keep the lease"(world) {
    const { locks, sent } = world.client();
    const lease = await locks.lock(world.name()).acquire();
    const requests = sent.length;
    for (const call of [() => lease.release({ force: true }), () => lease.isHeld({ force: true }), () => lease.events({ force: true })]) {
      await rejects((async () => call())(), world.InvalidOptionError, { option: "force" });
    }
    same([sent.length, await lease.isHeld(), await lease.release()], [requests, true, "released"]);
  },

  async "the bounds of each range are accepted, and undefined means the default"(world) {
    const lock = world.lock({ requestTimeoutMs: 60_000, keyLocking: "off", publish: "plain", allowHttp: true });
    const accepted = [
      { leaseMs: 86_400_000, waitMs: 86_400_000, maxRequests: 10_000 },
      { leaseMs: undefined, waitMs: undefined, maxRequests: undefined, replicas: undefined, signal: undefined },
      { waitMs: "until-aborted", signal: new AbortController().signal },
      Object.assign(Object.create(null), { leaseMs: 60_000, more: undefined }),
    ];
    for (const options of accepted) same(await (await lock.acquire(options)).release(), "released");
    // On a busy machine the wait may end before the grant, but the options are accepted.
    const least = lock.acquire({ leaseMs: 1_000, waitMs: 1, maxRequests: 3 }).then((lease) => lease.release());
    ok(!((await least.catch((error) => error)) instanceof world.InvalidOptionError), "the least");
    same(await lock.run(undefined, () => "done"), "done");
    throws(() => world.edgelatch.connect({ url: "http://gateway.internal", token: "t" }), world.InvalidOptionError, { option: "url" });
    world.edgelatch.connect({ url: "http://gateway.internal", token: "t", allowHttp: true });
    world.edgelatch.connect({ url: "https://example.com", token: "aA0_=+/.-~:", requestTimeoutMs: 50, keyLocking: "on", publish: "both" });
    for (const token of [undefined, "", "user:pass:word"]) {
      world.edgelatch.connect({ url: "https://example.com", token, dialect: "webdis" });
    }
    throws(() => world.edgelatch.connect({ url: "https://example.com", token: "user", dialect: "webdis" }), world.InvalidOptionError, {
      option: "token",
    });
  },
};

/** The message alone is enough to correct the call. */
function explains({ message, option, accepted }) {
  ok(typeof accepted === "string" && accepted.length > 3, "the accepted values");
  ok(message.includes(option) && message.includes(accepted), message);
}
