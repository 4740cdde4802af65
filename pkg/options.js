// Checks the callers' arguments once: behind this border each value has the right type and is in
// range. An option without a value stays undefined here and is NaN among the numbers for the
// WebAssembly, which has the defaults.
import { InvalidOptionError } from "./errors.js";

const DAY = 86_400_000;
const TEN_YEARS = 3650 * DAY;
const INT_MAX = 2 ** 31 - 1;
/**
 * The wording for a string without lone surrogates: UTF-8 would make all of them the same
 * character.
 */
export const TEXT = "a string of complete Unicode characters";

export const no = (option, accepted) =>
  new InvalidOptionError(`\`${option}\` is not acceptable: expected ${accepted}`, option, accepted);

export const isObject = (value) => typeof value === "object" && value !== null;

/** The names of other lock packages for these options. */
const ALIASES = {
  leaseMs: ["ttl", "ttlMs", "lease", "leaseTime", "leaseTimeMs", "duration", "expiry", "expires", "expiresIn", "lockTimeout", "px", "ex"],
  waitMs: ["timeout", "timeoutMs", "wait", "waitTime", "waitTimeMs", "acquireTimeout", "maxWait"],
  maxRequests: ["retries", "retry", "retryCount", "maxRetries", "attempts", "maxAttempts", "acquireAttemptsLimit"],
  requestTimeoutMs: ["timeout", "timeoutMs", "requestTimeout", "fetchTimeout"],
};
/** Why an option of `acquire` is not an option of `tryAcquire`. */
const MISPLACED = {
  waitMs: "tryAcquire does not wait; use acquire",
  maxRequests: "tryAcquire does not wait; use acquire",
};

/**
 * Returns an options object, empty for undefined. Throws at an unknown option, which would be
 * ignored otherwise.
 */
export const given = (value, ...known) => givenOf(value, known);

function givenOf(value, known) {
  if (value === undefined) return {};
  if (!isObject(value)) throw no("options", "an object");
  for (const name of Object.keys(value)) {
    if (known.includes(name) || value[name] === undefined) continue;
    const meant = known.find((option) => ALIASES[option]?.includes(name));
    const misplaced = known === GRANT ? MISPLACED[name] : undefined;
    const hint = meant ? `did you mean \`${meant}\`?` : (misplaced ?? `it takes ${known.join(", ") || "no options"}`);
    const accepted = known.length > 0 ? `one of ${known.join(", ")}` : "no options";
    throw new InvalidOptionError(`\`${name}\` is not an option here: ${hint}`, name, accepted);
  }
  return value;
}

/** Throws at any option, for methods without options. */
export const none = (value) => void givenOf(value, []);

/** Returns the value if it is undefined or fits; throws otherwise. */
export function checked(value, option, accepted, fits) {
  if (value === undefined || fits(value)) return value;
  throw no(option, accepted);
}

/** Returns a whole number in the range, or 0 for the special value `word`. */
function number(value, option, least, most, also = "", word) {
  if (value === word) return word === undefined ? undefined : 0;
  const fits = (number) => Number.isInteger(number) && number >= least && number <= most;
  return checked(value, option, `a whole number from ${least} to ${most}${also}`, fits);
}

/** Returns a whole number in the range, for an argument that must be given. */
const needed = (value, ...range) => number(value === undefined ? null : value, ...range);

const word = (value, option, words) => {
  const place = words.indexOf(checked(value, option, `one of ${words.join(", ")}`, (value) => words.includes(value)));
  return place < 0 ? undefined : place;
};

const flag = (value, option) => checked(value, option, "true or false", (value) => typeof value === "boolean");

const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);

export const maybeText = (value, option) => checked(value, option, TEXT, isText);

export const text = (value, option) => maybeText(value === undefined ? null : value, option);

function texts(value, option) {
  if (value === undefined) return [];
  const all = Array.isArray(value) ? Array.from(value) : [null];
  if (all.every(isText)) return all;
  throw no(option, `an array, each of its items ${TEXT}`);
}

/** Returns the ids of permits: at least one. */
function ids(value) {
  const all = texts(value, "ids");
  if (all.length > 0) return all;
  throw no("ids", "an array of ids of permits");
}

const isSignal = (value) => {
  try {
    return typeof value.addEventListener === "function" && "aborted" in value;
  } catch {
    return false;
  }
};

const life = ({ lifeMs }) => number(lifeMs, "lifeMs", 1, TEN_YEARS);
const skew = (options, name) => number(options[name], name, 0, 60_000);

const GRANT = ["leaseMs", "replicas", "signal"];
const WAIT = ["waitMs", "maxRequests"];

/** Reads the options of an acquisition; without `waits`, those of a wait are rejected. */
function terms(options, waits, permits) {
  const all = givenOf(options, waits ? [...GRANT, ...WAIT] : GRANT);
  const signal = checked(all.signal, "signal", "an AbortSignal", isSignal);
  const aborted = signal && "until-aborted";
  if (waits && all.waitMs === 0) throw no("waitMs", "a whole number from 1 on; to try once without waiting use tryAcquire");
  const waitMs = waits ? number(all.waitMs, "waitMs", 1, DAY, ', or "until-aborted" with a signal', aborted) : undefined;
  const requests = waits ? number(all.maxRequests, "maxRequests", 3, 10_000) : undefined;
  const leaseMs = number(all.leaseMs, "leaseMs", 100, DAY, ', or "renewed"', "renewed");
  const replicas = number(all.replicas, "replicas", 1, 8);
  return { numbers: [leaseMs, waitMs, requests, replicas, permits], signal };
}

/** Returns the options of `run` after a check that the work is a function. */
function worked(options, work) {
  if (typeof work === "function") return options;
  if (typeof options === "function") throw no("options", "the options before the function: run(options, work)");
  throw no("work", "a function");
}

/** The methods that acquire permits, at most `most` of them at once. */
const taking = (most) => {
  const some = (permits) => number(permits, "permits", 1, most);
  return {
    acquire: (permits, options) => terms(options, true, some(permits)),
    tryAcquire: (permits, options) => terms(options, false, some(permits)),
    run(permits, options, work) {
      const count = some(permits);
      return terms(worked(options, work), true, count);
    },
  };
};

const nothing = () => ({});
const one = (number) => ({ numbers: [number] });
const more = (permits) => one(needed(permits, "permits", -INT_MAX, INT_MAX));
const some = (permits) => one(number(permits, "permits", 1, INT_MAX));
const total = (permits) => needed(permits, "permits", 0, INT_MAX);

/** Readers of the methods' arguments, one object for each class. */
export const lock = {
  acquire: (options) => terms(options, true),
  tryAcquire: (options) => terms(options, false),
  run: (options, work) => terms(worked(options, work), true),
  forceRelease: nothing,
  inspect: nothing,
};
export const semaphore = {
  ...taking(INT_MAX),
  addPermits: more,
  release: some,
  releaseIfExists: some,
  drainPermits: nothing,
  trySetPermits: (permits, options) => ({ numbers: [total(permits), life(given(options, "lifeMs"))] }),
  availablePermits: nothing,
  inspect: nothing,
  forceRelease: nothing,
};
export const permitExpirableSemaphore = {
  ...taking(1000),
  release: (all) => ({ texts: ids(all) }),
  updateLeaseTime(all, leaseMs) {
    const { numbers } = one(leaseMs === null ? 0 : needed(leaseMs, "leaseMs", 100, DAY));
    return { numbers, texts: ids(all) };
  },
  trySetPermits: (permits) => one(total(permits)),
  setPermits: (permits) => one(total(permits)),
  addPermits: more,
  availablePermits: nothing,
  inspect: (all) => ({ texts: all === undefined ? [] : ids(all) }),
  forceRelease: nothing,
};
export const countDownLatch = {
  trySetCount: (count) => one(needed(count, "count", 1, 9_000_000_000_000_000)),
  countDown: nothing,
  count: nothing,
  // A wait for a latch has no lease and no replicas, since nothing is held afterwards.
  wait: (options) => terms(given(options, ...WAIT, "signal"), true),
  delete: nothing,
};
/** Returns the readers of a guard; `held` throws if its argument is not a lease. */
export const guard = (held) => {
  const write = (lease, options, read, ...known) => {
    const [owner, all] = [held(lease), given(options, "name", ...known)];
    const { texts, numbers } = read(all);
    const name = maybeText(all.name, "name");
    return { lease: owner, numbers, texts: name === undefined ? texts : [...texts, name] };
  };
  const bare = (lease, options) => write(lease, options, () => ({ texts: [""] }));
  return {
    set: (lease, value, options) => write(lease, options, (all) => ({ texts: [text(value, "value")], numbers: [life(all)] }), "lifeMs"),
    delete: bare,
    claim: bare,
    newest: nothing,
  };
};
export const lease = {
  isHeld: nothing,
  renew: (options) => one(number(given(options, "leaseMs").leaseMs, "leaseMs", 100, DAY)),
  release: nothing,
  eval(script, keys, args, options) {
    const [names, words] = [texts(keys, "keys"), texts(args, "args")];
    const all = [text(script, "script"), ...names, ...words];
    return { numbers: [flag(given(options, "once").once, "once"), names.length], texts: all };
  },
};

/** Readers of the options of each kind of object. */
export const made = {
  spinLock(options) {
    const { backoff } = given(options, "backoff");
    if (backoff === undefined) return [];
    if (!isObject(backoff)) throw no("backoff", "an object with a type");
    const kinds = ["exponential", "constant"];
    const type = word(backoff.type === undefined ? null : backoff.type, "type", kinds);
    given(backoff, "type", ...(type === 0 ? ["initialMs", "maxMs", "factor"] : ["delayMs"]));
    const pause = (name) => number(backoff[name], name, 1, 60_000);
    return type === 0
      ? [type, number(backoff.factor, "factor", 1, 1000), pause("initialMs"), pause("maxMs")]
      : [type, pause("delayMs")];
  },
  fairLock(options) {
    const all = given(options, "lifeMs", "skewMs", "redissonWaitTimeoutMs", "shortMs", "longMs");
    const { lifeMs, skewMs, redissonWaitTimeoutMs, shortMs, longMs } = all;
    return [
      number(lifeMs, "lifeMs", 1_000, 60_000),
      number(skewMs, "skewMs", 0, 3_600_000),
      number(redissonWaitTimeoutMs, "redissonWaitTimeoutMs", 1_000, DAY),
      number(shortMs, "shortMs", 3_000, 60_000),
      number(longMs, "longMs", shortMs ?? 5_000, 600_000),
    ];
  },
  readWriteLock(options) {
    const { preferWriters, peerWatchdogMs } = given(options, "preferWriters", "peerWatchdogMs");
    const wants = typeof preferWriters === "boolean";
    const fits = (value) => wants || (Number.isInteger(value) && value >= 100 && value <= 5_000);
    checked(preferWriters, "preferWriters", "true, false, or a whole number from 100 to 5000", fits);
    const want = wants ? (preferWriters ? 0 : undefined) : preferWriters;
    return [want, number(peerWatchdogMs, "peerWatchdogMs", 100, DAY, ", or null", null)];
  },
  permitExpirableSemaphore: (options) => [skew(given(options, "peerSkewMs"), "peerSkewMs")],
  guard(options) {
    const { memoryMs, lock } = given(options, "memoryMs", "lock");
    const memory = number(memoryMs, "memoryMs", 60_000, TEN_YEARS, ', or "for-ever"', "for-ever");
    const isName = (value) => isText(value) && value !== "";
    return { memory, lock: checked(lock, "lock", "the name of the lock that protects the key", isName) };
  },
  redLock(options) {
    const { rejoinDelayMs } = given(options, "rejoinDelayMs");
    return [number(rejoinDelayMs, "rejoinDelayMs", 1_000, DAY)];
  },
  groupLock: (options) => [skew(given(options, "clockSkewMs"), "clockSkewMs")],
};
made.nonReentrantFairLock = made.fairLock;
for (const kind of ["lock", "nonReentrantLock", "fencedLock", "semaphore", "countDownLatch"]) made[kind] = none;

/** Returns the values of a group, texts or bytes, as bytes. */
export function bytes(values) {
  const all = Array.isArray(values) ? Array.from(values, (value) => (isText(value) ? new TextEncoder().encode(value) : value)) : [0];
  // The tag also matches a `Uint8Array` of another realm.
  if (all.every((value) => Object.prototype.toString.call(value) === "[object Uint8Array]")) return all;
  throw no("values", `an array of 1 to 1000 items, each a Uint8Array or ${TEXT}`);
}

/** The options of `connect` beside `url` and `token`. */
const CLIENT = ["dialect", "allowHttp", "keyLocking", "publish", "wakeups", "requestTimeoutMs", "fetch", "redactNames"];

/**
 * Returns the settings of a client: the arguments for the WebAssembly, and whether errors omit
 * names.
 */
function settings(all, url, token) {
  const { dialect, allowHttp, keyLocking, publish, wakeups, requestTimeoutMs, fetch, redactNames } = all;
  const place = word(dialect, "dialect", ["upstash", "webdis"]);
  // A Webdis may have no authentication.
  const secret = place === 1 ? (token ?? "") : text(token, "token");
  const numbers = [
    place,
    flag(allowHttp, "allowHttp"),
    word(keyLocking, "keyLocking", ["auto", "on", "off"]),
    word(publish, "publish", ["plain", "sharded", "both"]),
    word(wakeups, "wakeups", ["auto", "off"]),
    number(requestTimeoutMs, "requestTimeoutMs", 50, 60_000),
    flag(redactNames, "redactNames"),
  ];
  const carry = checked(fetch, "fetch", "a function", (value) => typeof value === "function");
  return { module: [url, secret, numbers, carry], redactNames: redactNames === true };
}

/** Reads the options of `connect`. */
export function client(options) {
  if (!isObject(options)) throw no("options", "an object with url and token");
  const all = given(options, "url", "token", ...CLIENT);
  const { url, token } = all;
  if (url === undefined) throw missing("url", "the gateway's REST address, such as https://….upstash.io");
  if (token === undefined && all.dialect !== "webdis") throw missing("token", "the gateway's REST token");
  return settings(all, address(text(url, "url"), all), maybeText(token, "token"));
}

/** A missing option usually comes from an environment variable that is not set. */
const missing = (option, what) =>
  new InvalidOptionError(`\`${option}\` is undefined: expected ${what}; is its environment variable set?`, option, what);

/** Rejects addresses of other protocols with advice on the right one. */
function address(url, { allowHttp }) {
  const scheme = /^\s*([a-z+]+):\/\//i.exec(url)?.[1].toLowerCase();
  if (scheme === "redis" || scheme === "rediss") {
    throw no("url", "the address of an HTTP gateway (https://…), not of Redis itself; Upstash calls it the REST URL");
  }
  const { hostname } = URL.canParse?.(url) ? new URL(url) : {};
  const isLocal = hostname === "localhost" || /^127\.|^\[::1\]$/.test(hostname);
  if (scheme === "http" && hostname && !isLocal && allowHttp !== true) {
    throw no("url", "https://; for http:// in a private network set `allowHttp: true`, since the token travels in the clear");
  }
  return url;
}

/** The variables' names in the gateways' own documentation; the first that is set wins. */
const NAMES = { URL: ["UPSTASH_REDIS_REST_URL", "KV_REST_API_URL"], TOKEN: ["UPSTASH_REDIS_REST_TOKEN", "KV_REST_API_TOKEN"] };

/**
 * Reads the arguments of `connect.fromEnv`: address and token come from `env`, by default the
 * process's environment.
 */
export function clientFromEnv(env, options) {
  const all = given(options, "prefix", ...CLIENT);
  const prefix = maybeText(all.prefix, "prefix") ?? "";
  const from = env === undefined ? globalThis.process?.env : env;
  if (!isObject(from)) throw no("env", "an object, such as a Worker's bindings; this runtime has no process.env");
  const [url, token] = [NAMES.URL, NAMES.TOKEN].map(([first, second]) => {
    for (const name of [prefix + first, prefix + second]) {
      const value = from[name];
      if (typeof value === "string" && value.trim() !== "") return value;
    }
    const accepted = `it or ${prefix}${second} in the environment, as a string that is not empty`;
    throw new InvalidOptionError(`\`${prefix}${first}\` is not set: expected ${accepted}`, prefix + first, accepted);
  });
  return settings(all, address(url, all), token);
}
