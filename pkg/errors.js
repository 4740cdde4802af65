// What the WebAssembly hands out and JavaScript alone can make in few bytes: errors, whose classes
// extend Error (errors.d.ts says what they mean), and objects that do not change.

/** Marks errors of every copy of the package in a process: `import` and `require` load one each. */
const BRAND = Symbol.for("edgelatch.error");
/** The same for clients, locks and all that comes of them. */
export const OBJECT = Symbol.for("edgelatch.object");
const isOurs = (value) => typeof value === "object" && value !== null && BRAND in value;

export class EdgelatchError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }

  get [BRAND]() {
    return true;
  }

  // A class of the caller's that extends one of ours is matched by its own prototype.
  static [Symbol.hasInstance](value) {
    return this === EdgelatchError ? isOurs(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

/**
 * As `new Error(message, { cause })` does: not enumerable, since whoever serializes an error need
 * not be able to serialize what caused it.
 */
const setCause = (error, cause) => Object.defineProperty(error, "cause", { value: cause, writable: true, configurable: true });

/** One kind of error: its code, and the names of what its constructor takes after the message. */
function kind(name, code, ...fields) {
  const Kind = class extends EdgelatchError {
    constructor(message, ...values) {
      super(code, message);
      fields.forEach((field, i) => {
        if (field === "cause") setCause(this, values[i]);
        // Absent where the gateway sent no response.
        else if (field !== "status" || values[i] !== undefined) this[field] = values[i] ?? null;
      });
    }

    static [Symbol.hasInstance](value) {
      return this === Kind ? isOurs(value) && value.code === code : super[Symbol.hasInstance](value);
    }
  };
  // A minifier may rename the class; `name` is part of the interface.
  Object.defineProperty(Kind, "name", { value: name });
  Object.defineProperty(Kind.prototype, "name", { value: name });
  return Kind;
}

/** In the order of the numbers in src/js/error.rs. */
const kinds = [
  kind("InvalidOptionError", "invalid-option", "option", "accepted"),
  kind("WaitTimeoutError", "wait-timeout", "remainingMs"),
  kind("LeaseLostError", "lease-lost", "reason"),
  kind("ReentrancyError", "reentrancy", "reason"),
  kind("NotExecutedError", "not-executed", "status"),
  kind("GatewayRefusedError", "gateway-refused", "reason"),
  kind("GatewayUnreachableError", "gateway-unreachable", "status"),
  kind("GatewayTooSlowError", "gateway-too-slow"),
  kind("OutcomeUnknownError", "outcome-unknown", "freeInMs", "status"),
  kind("StaleTokenError", "stale-token", "reason", "newest"),
  kind("ScriptFailedError", "script-failed"),
  kind("BrokenError", "broken"),
  kind("StartError", "start-failed", "cause"),
  kind("NotSetUpError", "not-set-up"),
];
export const [
  InvalidOptionError, WaitTimeoutError, LeaseLostError, ReentrancyError, NotExecutedError, GatewayRefusedError, GatewayUnreachableError,
  GatewayTooSlowError, OutcomeUnknownError, StaleTokenError, ScriptFailedError, BrokenError, StartError, NotSetUpError,
] = kinds;

/**
 * An error as the WebAssembly reports it; `errorOf` makes the error, where the caller can see from
 * where it comes.
 */
class Failure {
  constructor(place, message, values) {
    Object.assign(this, { place, message, values });
  }
}

export const fail = (place, message, ...values) => new Failure(place, message, values);

/** Errors that the runtime's own error about a request may have caused. */
const OF_THE_NETWORK = ["gateway-unreachable", "outcome-unknown", "not-executed"];

/**
 * The error for a failure, with the object that it is about: `{ kind, name, host }`. Anything else
 * is handed on as it is, such as the reason of the caller's own signal. The stack begins at the
 * caller of `entry`, or is that of `caller`, an error that was made when the call began; `cause` is
 * the runtime's last error at this host.
 */
export function errorOf(failure, about, entry, cause, caller) {
  if (!(failure instanceof Failure)) return failure;
  const { place, message, values } = failure;
  const Kind = kinds[place];
  if (Kind === InvalidOptionError) about = {};
  const error = new Kind(message + where(about), ...values);
  const { kind, host } = about;
  const name = about.redactNames ? undefined : about.name;
  if (name !== undefined) error[kind === "guard" ? "key" : "lock"] = name;
  if (host !== undefined) error.host = host;
  if (cause && OF_THE_NETWORK.includes(error.code)) setCause(error, cause);
  if (caller) error.stack = caller.stack.replace(/^.*/, String(error));
  else Error.captureStackTrace?.(error, entry);
  return error;
}

/** The object and the host, for the end of a message. */
function where({ kind, name, host, redactNames }) {
  const object = name === undefined || redactNames ? kind : `${kind} ${JSON.stringify(name)}`;
  const parts = [object, host && `gateway ${host}`].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

/**
 * In the order of `Snapshot` in src/js/counts.rs; a question mark stands behind what is true or
 * false.
 */
const snapshots = [
  ["locked?", "holdCount", "remainingMs", "lastToken"],
  ["available", "leases", "held"],
  ["available", "acquired", "total", "remainingMs", "areHeld?"],
];

/** What Redis says at one moment: an object that does not change any more. */
export const snapshot = (place, numbers) =>
  Object.freeze(
    Object.fromEntries(
      snapshots[place].map((name, i) => {
        const number = Number.isNaN(numbers[i]) ? null : numbers[i];
        return name.endsWith("?") ? [name.slice(0, -1), number === 1] : [name, number];
      }),
    ),
  );

/** What has become of a lease. */
export const situation = (type, reason, remainingMs) => Object.freeze({ type, reason, remainingMs });

/** How waits go on. */
export const noticed = (type, byMs) => Object.freeze(byMs === undefined ? { type } : { type, byMs });

/** Why the module is used no more, once it has failed. */
let broken;
/** What rejects those who wait for it. */
export const waiting = new Set();
/** What aborts the signals of its leases, for as long as anybody else refers to them. */
let controllers = [];
let many = 64;

/** The objects whose loss the signals report, and the one whose signal is being made. */
const losses = new WeakMap();
let current = {};

/** The signal that `read` returns, which is to name this object. It may be aborted already. */
export function lossOf(about, read) {
  current = about;
  const signal = read();
  current = {};
  losses.set(signal, about);
  return signal;
}

export class LossController extends AbortController {
  abort(failure) {
    super.abort(errorOf(failure, losses.get(this.signal) ?? current));
  }

  constructor() {
    super();
    // Older Workers have none; there calls alone tell of it.
    if (typeof WeakRef === "undefined") return;
    controllers.push(new WeakRef(this));
    if (controllers.length < many) return;
    controllers = controllers.filter((one) => one.deref());
    many = 64 + 2 * controllers.length;
  }
}

/**
 * Whatever is thrown through the module leaves its memory half changed: nothing may touch that
 * again, and whoever counts on it is told.
 */
function breaks(cause) {
  broken = new BrokenError("the package has failed inside and does nothing any more; what it held ends with its lease");
  setCause(broken, cause);
  for (const reject of waiting) reject(broken);
  for (const one of controllers) one.deref()?.abort(broken);
}

/** The module's functions, until one of them throws. */
export const watched = (exports) =>
  Object.fromEntries(
    Object.entries(exports).map(([name, value]) => {
      if (typeof value !== "function") return [name, value];
      // What the runtime calls by itself has nobody to tell.
      const isAsked = /^(thing_|connect)/.test(name);
      return [name, (...values) => {
        try {
          if (!broken) return value(...values);
        } catch (thrown) {
          broken ?? breaks(thrown);
        }
        if (isAsked) throw broken;
        return [];
      }];
    }),
  );
