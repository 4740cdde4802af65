// Checks the callers' arguments once: past this point each value has the right type and is in
// range. An option without a value stays undefined here and is NaN among the numbers for the
// WebAssembly, which has the defaults. src/js/numbers.rs reads the places of the numbers from here.
import { InvalidOptionError } from "./errors.js";
import { OBJECT } from "./mark.js";

const DAY = 86_400_000;
const TEN_YEARS = 3650 * DAY;
const INT_MAX = 2 ** 31 - 1;
/**
 * The wording for a string without lone surrogates: UTF-8 would make all of them the same
 * character.
 */
export const TEXT = "a string of complete Unicode characters";

export const invalid = (option, accepted) =>
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
  onWait: "tryAcquire does not wait; use acquire",
};

/**
 * Returns an options object, empty for undefined. Throws at an unknown option, which would be
 * ignored otherwise.
 */
export const checkOptions = (value, ...names) => checkNames(value, names);

function checkNames(value, names) {
  if (value === undefined) return {};
  if (!isObject(value)) throw invalid("options", "an object");
  for (const name of Object.keys(value)) {
    if (names.includes(name) || value[name] === undefined) continue;
    const meant = names.find((option) => ALIASES[option]?.includes(name));
    const misplaced = names === GRANT ? MISPLACED[name] : undefined;
    const hint = meant ? `did you mean \`${meant}\`?` : (misplaced ?? `it takes ${names.join(", ") || "no options"}`);
    const accepted = names.length > 0 ? `one of ${names.join(", ")}` : "no options";
    throw new InvalidOptionError(`\`${name}\` is not an option here: ${hint}`, name, accepted);
  }
  return value;
}

/** Throws at any option, for methods without options. */
export const noOptions = (value) => void checkNames(value, []);

/** Returns the value if it is undefined or fits; throws otherwise. */
export function check(value, option, accepted, fits) {
  if (value === undefined || fits(value)) return value;
  throw invalid(option, accepted);
}

/** Returns a whole number in the range, or 0 for the special value `word`. */
function number(value, option, min, max, also = "", word) {
  if (value === word) return word === undefined ? undefined : 0;
  const fits = (number) => Number.isInteger(number) && number >= min && number <= max;
  return check(value, option, `a whole number from ${min} to ${max}${also}`, fits);
}

/** Returns a whole number in the range, for an argument that must be given. */
const requiredNumber = (value, ...range) => number(value === undefined ? null : value, ...range);

const choice = (value, option, words) => {
  const index = words.indexOf(check(value, option, `one of ${words.join(", ")}`, (value) => words.includes(value)));
  return index < 0 ? undefined : index;
};

const boolean = (value, option) => check(value, option, "true or false", (value) => typeof value === "boolean");

const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);

export const optionalText = (value, option) => check(value, option, TEXT, isText);

export const requiredText = (value, option) => optionalText(value === undefined ? null : value, option);

function texts(value, option) {
  if (value === undefined) return [];
  const all = Array.isArray(value) ? Array.from(value) : [null];
  if (all.every(isText)) return all;
  throw invalid(option, `an array, each of its items ${TEXT}`);
}

/** Returns the ids of permits: at least one. */
function ids(value) {
  const all = texts(value, "ids");
  if (all.length > 0) return all;
  throw invalid("ids", "an array of ids of permits");
}

const isSignal = (value) => {
  try {
    return typeof value.addEventListener === "function" && "aborted" in value;
  } catch {
    return false;
  }
};

const readLifeMs = ({ lifeMs }) => number(lifeMs, "lifeMs", 1, TEN_YEARS);
const readSkew = (options, name) => number(options[name], name, 0, 60_000);

const GRANT = ["leaseMs", "replicas", "signal"];
const WAIT = ["waitMs", "maxRequests", "onWait"];

/** Reads the options of an acquisition; without `waits`, those of a wait are rejected. */
function acquireParams(options, waits, permits) {
  const all = checkNames(options, waits ? [...GRANT, ...WAIT] : GRANT);
  const signal = check(all.signal, "signal", "an AbortSignal", isSignal);
  const aborted = signal && "until-aborted";
  if (waits && all.waitMs === 0) throw invalid("waitMs", "a whole number from 1 on; to try once without waiting use tryAcquire");
  const waitMs = waits ? number(all.waitMs, "waitMs", 1, DAY, ', or "until-aborted" with a signal', aborted) : undefined;
  const requests = waits ? number(all.maxRequests, "maxRequests", 3, 10_000) : undefined;
  const leaseMs = number(all.leaseMs, "leaseMs", 100, DAY, ', or "renewed"', "renewed");
  const replicas = number(all.replicas, "replicas", 1, 8);
  const onWait = waits ? check(all.onWait, "onWait", "a function", (value) => typeof value === "function") : undefined;
  // An exception of the caller's function is no error of the engine.
  return { numbers: [leaseMs, waitMs, requests, replicas, permits], signal, onWait: onWait && (() => queueMicrotask(onWait)) };
}

/** Returns the options of `run` after a check that the work is a function. */
function runOptions(options, work) {
  if (typeof work === "function") return options;
  if (typeof options === "function") throw invalid("options", "the options before the function: run(options, work)");
  throw invalid("work", "a function");
}

/** The methods that acquire permits, at most `max` of them at once. */
const permitMethods = (max) => {
  const permitCount = (permits) => number(permits, "permits", 1, max);
  return {
    acquire: (permits, options) => acquireParams(options, true, permitCount(permits)),
    tryAcquire: (permits, options) => acquireParams(options, false, permitCount(permits)),
    run(permits, options, work) {
      const count = permitCount(permits);
      return acquireParams(runOptions(options, work), true, count);
    },
  };
};

const noArguments = () => ({});
const oneNumber = (number) => ({ numbers: [number] });
const permitChange = (permits) => oneNumber(requiredNumber(permits, "permits", -INT_MAX, INT_MAX));
const permitCount = (permits) => oneNumber(number(permits, "permits", 1, INT_MAX));
const permitTotal = (permits) => requiredNumber(permits, "permits", 0, INT_MAX);

/** Readers of the methods' arguments, one object for each class. */
export const lock = {
  acquire: (options) => acquireParams(options, true),
  tryAcquire: (options) => acquireParams(options, false),
  run: (options, work) => acquireParams(runOptions(options, work), true),
  forceRelease: noArguments,
  inspect: noArguments,
};
export const fairReadWriteLock = {
  steal: (options) => acquireParams(options, false),
  forceRelease: noArguments,
  inspect: noArguments,
  query: noArguments,
};
export const semaphore = {
  ...permitMethods(INT_MAX),
  addPermits: permitChange,
  release: permitCount,
  releaseIfExists: permitCount,
  drainPermits: noArguments,
  trySetPermits: (permits, options) => ({ numbers: [permitTotal(permits), readLifeMs(checkOptions(options, "lifeMs"))] }),
  availablePermits: noArguments,
  inspect: noArguments,
  forceRelease: noArguments,
};
export const permitExpirableSemaphore = {
  ...permitMethods(1000),
  release: (all) => ({ texts: ids(all) }),
  updateLeaseTime(all, leaseMs) {
    const { numbers } = oneNumber(leaseMs === null ? 0 : requiredNumber(leaseMs, "leaseMs", 100, DAY));
    return { numbers, texts: ids(all) };
  },
  trySetPermits: (permits) => oneNumber(permitTotal(permits)),
  setPermits: (permits) => oneNumber(permitTotal(permits)),
  addPermits: permitChange,
  availablePermits: noArguments,
  inspect: (all) => ({ texts: all === undefined ? [] : ids(all) }),
  forceRelease: noArguments,
};
export const countDownLatch = {
  trySetCount: (count) => oneNumber(requiredNumber(count, "count", 1, 9_000_000_000_000_000)),
  countDown: noArguments,
  count: noArguments,
  // A wait for a latch has no lease and no replicas, since nothing is held afterwards.
  wait: (options) => acquireParams(checkOptions(options, ...WAIT, "signal"), true),
  delete: noArguments,
};
/** Returns the readers of a guard; `requireLease` throws if its argument is not a lease. */
export const guard = (requireLease) => {
  const write = (lease, options, read, ...names) => {
    const [owner, all] = [requireLease(lease), checkOptions(options, "name", ...names)];
    const { texts, numbers } = read(all);
    const name = optionalText(all.name, "name");
    return { lease: owner, numbers, texts: name === undefined ? texts : [...texts, name] };
  };
  const withoutValue = (lease, options) => write(lease, options, () => ({ texts: [""] }));
  return {
    set: (lease, value, options) => write(lease, options, (all) => ({ texts: [requiredText(value, "value")], numbers: [readLifeMs(all)] }), "lifeMs"),
    delete: withoutValue,
    claim: withoutValue,
    newest: noArguments,
  };
};
export const lease = {
  isHeld: noArguments,
  renew: (options) => oneNumber(number(checkOptions(options, "leaseMs").leaseMs, "leaseMs", 100, DAY)),
  release: noArguments,
  eval(script, keys, args, options) {
    const [names, words] = [texts(keys, "keys"), texts(args, "args")];
    const all = [requiredText(script, "script"), ...names, ...words];
    return { numbers: [boolean(checkOptions(options, "once").once, "once"), names.length], texts: all };
  },
};

/** Readers of the options of each kind of object. */
export const creation = {
  spinLock(options) {
    const { backoff } = checkOptions(options, "backoff");
    if (backoff === undefined) return [];
    if (!isObject(backoff)) throw invalid("backoff", "an object with a type");
    const kinds = ["exponential", "constant"];
    const type = choice(backoff.type === undefined ? null : backoff.type, "type", kinds);
    checkOptions(backoff, "type", ...(type === 0 ? ["initialMs", "maxMs", "factor"] : ["delayMs"]));
    const pause = (name) => number(backoff[name], name, 1, 60_000);
    return type === 0
      ? [type, number(backoff.factor, "factor", 1, 1000), pause("initialMs"), pause("maxMs")]
      : [type, pause("delayMs")];
  },
  fairLock(options) {
    const all = checkOptions(options, "lifeMs", "skewMs", "redissonWaitTimeoutMs", "shortMs", "longMs");
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
    const { preferWriters, peerWatchdogMs } = checkOptions(options, "preferWriters", "peerWatchdogMs");
    const wants = typeof preferWriters === "boolean";
    const fits = (value) => wants || (Number.isInteger(value) && value >= 100 && value <= 5_000);
    check(preferWriters, "preferWriters", "true, false, or a whole number from 100 to 5000", fits);
    const want = wants ? (preferWriters ? 0 : undefined) : preferWriters;
    return [want, number(peerWatchdogMs, "peerWatchdogMs", 100, DAY, ", or null", null)];
  },
  fairReadWriteLock(options) {
    const all = checkOptions(options, "clientId", "lifeMs", "maxHolders", "maxWaiters");
    const { clientId = "", lifeMs, maxHolders, maxWaiters } = all;
    const limits = [
      number(lifeMs, "lifeMs", 1_000, 60_000),
      number(maxHolders, "maxHolders", 1, 20_000),
      number(maxWaiters, "maxWaiters", 1, 20_000),
    ];
    return { limits, clientId: new TextEncoder().encode(requiredText(clientId, "clientId")) };
  },
  permitExpirableSemaphore: (options) => [readSkew(checkOptions(options, "peerSkewMs"), "peerSkewMs")],
  guard(options) {
    const { memoryMs, lock } = checkOptions(options, "memoryMs", "lock");
    const memory = number(memoryMs, "memoryMs", 60_000, TEN_YEARS, ', or "for-ever"', "for-ever");
    const isName = (value) => isText(value) && value !== "";
    return { memory, lock: check(lock, "lock", "the name of the lock that protects the key", isName) };
  },
  redLock(options) {
    const { rejoinDelayMs } = checkOptions(options, "rejoinDelayMs");
    return [number(rejoinDelayMs, "rejoinDelayMs", 1_000, DAY)];
  },
  groupLock: (options) => [readSkew(checkOptions(options, "clockSkewMs"), "clockSkewMs")],
};
creation.nonReentrantFairLock = creation.fairLock;
for (const kind of ["lock", "nonReentrantLock", "fencedLock", "semaphore", "countDownLatch"]) creation[kind] = noOptions;

/** Returns the values of a group, texts or bytes, as bytes. */
export function groupValues(values) {
  const all = Array.isArray(values) ? Array.from(values, (value) => (isText(value) ? new TextEncoder().encode(value) : value)) : [0];
  // The tag also matches a `Uint8Array` of another realm.
  if (all.every((value) => Object.prototype.toString.call(value) === "[object Uint8Array]")) return all;
  throw invalid("values", `an array of 1 to 1000 items, each a Uint8Array or ${TEXT}`);
}

/** The options of `connect` beside `url` and `token`. */
const CLIENT = ["dialect", "allowHttp", "keyLocking", "publish", "wakeups", "requestTimeoutMs", "fetch", "redactNames", "log"];

/**
 * Returns the settings of a client: the arguments for the WebAssembly, whether errors omit names,
 * and the log.
 */
function settings(all, url, token) {
  const { dialect, allowHttp, keyLocking, publish, wakeups, requestTimeoutMs, fetch, redactNames, log = globalThis[OBJECT] } = all;
  const dialectIndex = choice(dialect, "dialect", ["upstash", "webdis"]);
  // A Webdis may have no authentication.
  const secret = dialectIndex === 1 ? (token ?? "") : requiredText(token, "token");
  const numbers = [
    dialectIndex,
    boolean(allowHttp, "allowHttp"),
    choice(keyLocking, "keyLocking", ["auto", "on", "off"]),
    choice(publish, "publish", ["plain", "sharded", "both"]),
    choice(wakeups, "wakeups", ["auto", "off"]),
    number(requestTimeoutMs, "requestTimeoutMs", 50, 60_000),
    boolean(redactNames, "redactNames"),
  ];
  const fetchFunction = check(fetch, "fetch", "a function", (value) => typeof value === "function");
  check(log, "log", "a log of edgelatch/log", (value) => value?.[OBJECT]);
  return { module: [url, secret, numbers, fetchFunction], redactNames: redactNames === true, log };
}

/** Reads the options of `connect`. */
export function client(options) {
  if (!isObject(options)) throw invalid("options", "an object with url and token");
  const all = checkOptions(options, "url", "token", ...CLIENT);
  const { url, token } = all;
  if (url === undefined) throw missing("url", "the gateway's REST address, such as https://….upstash.io");
  if (token === undefined && all.dialect !== "webdis") throw missing("token", "the gateway's REST token");
  return settings(all, address(requiredText(url, "url"), all), optionalText(token, "token"));
}

/** A missing option usually comes from an environment variable that is not set. */
const missing = (option, what) =>
  new InvalidOptionError(`\`${option}\` is undefined: expected ${what}; is its environment variable set?`, option, what);

/** A host, an IPv6 address in brackets included; then a port and a path, if any. */
const ADDRESS = /^(https?):\/\/(\[[\da-fA-F:]+\]|[\w.-]+)(?::\d+)?(?:\/[^@?#]*)?$/;

/**
 * Whether a host is loopback, by the rule of `is_loopback` in address.rs. It reads the text itself:
 * a URL parser accepts more spellings, such as `127.1`.
 */
function isLoopback(host) {
  const [first, ...bytes] = host.split(".");
  if (/^(\[::1\]|(.+\.)?localhost)$/i.test(host)) return true;
  return first === "127" && bytes.length === 3 && bytes.every((byte) => /^\d{1,5}$/.test(byte) && byte < 256);
}

/**
 * Rejects `http://` with advice on the option that allows it, and a host or port that the runtime's
 * URL parser rejects; the WebAssembly checks the rest.
 */
function address(url, { allowHttp }) {
  const text = url.trim();
  const [, scheme, host] = ADDRESS.exec(text) ?? [];
  if (scheme === "http" && !isLoopback(host) && allowHttp !== true) {
    throw invalid("url", "https://; for http:// in a private network set `allowHttp: true`, since the token travels in the clear");
  }
  if (scheme && URL.canParse?.(text) === false) throw invalid("url", "an address with a host, and a port of 1 to 65535 if any");
  return url;
}

/** The variables' names in the gateways' own documentation; the first that is set wins. */
const NAMES = { URL: ["UPSTASH_REDIS_REST_URL", "KV_REST_API_URL"], TOKEN: ["UPSTASH_REDIS_REST_TOKEN", "KV_REST_API_TOKEN"] };

/**
 * Calls `open` with the settings that the arguments of `connect.fromEnv` describe: address and
 * token come from `env`, by default the process's environment. An error about one of them names its
 * variable.
 */
export function clientFromEnv(env, options, open) {
  const all = checkOptions(options, "prefix", ...CLIENT);
  const prefix = optionalText(all.prefix, "prefix") ?? "";
  const from = env === undefined ? globalThis.process?.env : env;
  if (!isObject(from)) throw invalid("env", "an object, such as a Worker's bindings; this runtime has no process.env");
  const [url, token] = [NAMES.URL, NAMES.TOKEN].map(([first, second]) => {
    for (const name of [prefix + first, prefix + second]) {
      const value = from[name];
      if (typeof value === "string" && value.trim() !== "") return { name, value };
    }
    const accepted = `it or ${prefix}${second} in the environment, as a string that is not empty`;
    throw new InvalidOptionError(`\`${prefix}${first}\` is not set: expected ${accepted}`, prefix + first, accepted);
  });
  try {
    return open(settings(all, address(url.value, all), token.value));
  } catch (error) {
    const variable = { url, token }[error.option]?.name;
    throw variable === undefined ? error : invalid(variable, error.accepted);
  }
}
