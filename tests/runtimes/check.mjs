/** Assertions that depend on no runtime, and the rules for every error of the package. */

/** Texts that no error may contain; programs add the gateway's token. */
export const secrets = new Set();

/**
 * The longest time for one event on a slow machine. Not a promise: a test that takes longer hangs,
 * and the message says where.
 */
const MAX_WAIT_MS = 180_000;

/** The name of the method that ends a lease; without `await using`, the one that esbuild calls. */
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

const CODES = {
  InvalidOptionError: "invalid-option",
  WaitTimeoutError: "wait-timeout",
  LeaseLostError: "lease-lost",
  ReentrancyError: "reentrancy",
  NotExecutedError: "not-executed",
  StaleTokenError: "stale-token",
  ScriptFailedError: "script-failed",
  BrokenError: "broken",
  StartError: "start-failed",
  NotSetUpError: "not-set-up",
  QueueFullError: "queue-full",
  GatewayRefusedError: "gateway-refused",
  GatewayUnreachableError: "gateway-unreachable",
  GatewayTooSlowError: "gateway-too-slow",
  OutcomeUnknownError: "outcome-unknown",
};

/** The codes for a response that came later than the times of a call allow. */
const SLOW = ["gateway-unreachable", "gateway-too-slow", "outcome-unknown"];

/** Whether a call failed only because the machine may be too slow for its times. */
export const isTooSlow = (error) => SLOW.includes(error?.code);

/** Owner ids are UUIDs of version 8, and no other text in these tests has that form. */
const OWNER = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-/;

/**
 * Whether the package sends requests to this path. A path contains at most one part of a name,
 * without characters that have a meaning in paths.
 */
export const isExpectedUrl = (path) => /^\/(?:pipeline|s?subscribe\/[\w~%-]+)?$/.test(path);

export function ok(value, what) {
  if (!value) throw new Error(`expected: ${what}`);
}

export function same(actual, expected, what = "values") {
  const [left, right] = [show(actual), show(expected)];
  if (left !== right) throw new Error(`${what} differ: ${left}, expected ${right}`);
}

/**
 * Returns the error that the promise rejects with, which must be of this class of the package and
 * have these fields.
 */
export async function rejects(promise, Class, fields = {}) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return of(error, Class, fields);
  }
  throw new Error(`returned ${show(value)} instead of rejecting with ${Class.name}`);
}

/**
 * Checks that a synchronous call throws an error of this class of the package with these fields.
 */
export function throws(call, Class, fields = {}) {
  let value;
  try {
    value = call();
  } catch (error) {
    return of(error, Class, fields);
  }
  throw new Error(`returned ${show(value)} instead of throwing ${Class.name}`);
}

/**
 * Returns the reason that the promise rejects with, if it is the caller's own and may be any value.
 */
export async function rejection(promise) {
  try {
    await promise;
  } catch (reason) {
    return reason;
  }
  throw new Error("did not reject");
}

/** Waits until `condition` returns a truthy value, and returns it. */
export async function until(condition, what, waitMs = MAX_WAIT_MS) {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`did not happen: ${what}`);
    await new Promise((next) => setTimeout(next, 5));
  }
}

/** Returns the promise's result, or throws an error that names the event that did not happen. */
export async function soon(promise, what) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not happen: ${what}`)), MAX_WAIT_MS);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function of(error, Class, fields) {
  if (!(error instanceof Class)) {
    throw new Error(`expected ${Class.name}, got ${error?.name}: ${error?.message}`, { cause: error });
  }
  ok(error instanceof Error, "it is an Error");
  same(error.name, Class.name, "name");
  same(error.code, CODES[Class.name], "code");
  same(Object.prototype.toString.call(error), "[object Error]");
  for (const [field, value] of Object.entries(fields)) same(error[field], value, field);
  keepsSecrets(error);
  return error;
}

/**
 * Checks that the texts that programs log of an error contain neither the token, nor an owner id,
 * nor a script.
 */
function keepsSecrets(error) {
  const own = Object.getOwnPropertyNames(error).map((name) => `${name}=${String(error[name])}`);
  const text = [String(error), error.message, error.stack, JSON.stringify(error), ...own].join("\n");
  for (const secret of secrets) ok(!text.includes(secret), "no error shows a secret");
  ok(!OWNER.test(text), `no error shows an owner id: ${text}`);
  ok(!text.includes("redis.call") && !text.includes("EVAL"), `no error shows a script or its command: ${text}`);
}

function show(value) {
  return typeof value === "string" ? value : (JSON.stringify(value, plain) ?? String(value));
}

function plain(_key, value) {
  if (typeof value === "bigint" || typeof value === "function" || Object.is(value, NaN)) return String(value);
  return value;
}
