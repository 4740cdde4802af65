// Creates the JavaScript values that the WebAssembly returns: errors, whose classes extend Error
// (errors.d.ts documents them), and frozen objects. Creating them here takes fewer bytes.

/** Marks errors of every copy of the package in a process: `import` and `require` load one each. */
const BRAND = Symbol.for("edgelatch.error");
/** Marks clients, locks and all objects created from them, of every copy of the package. */
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

  // A caller's subclass of one of these classes is matched by its own prototype.
  static [Symbol.hasInstance](value) {
    return this === EdgelatchError ? isOurs(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

/**
 * Sets `cause` as `new Error(message, { cause })` does. It is not enumerable: code that serializes
 * an error may be unable to serialize its cause.
 */
const setCause = (error, cause) => Object.defineProperty(error, "cause", { value: cause, writable: true, configurable: true });

/**
 * Returns the class of one kind of error: its code, and the names of the constructor's arguments
 * after the message.
 */
function kind(name, code, ...fields) {
  const Kind = class extends EdgelatchError {
    constructor(message, ...values) {
      super(code, message);
      fields.forEach((field, i) => {
        if (field === "cause") setCause(this, values[i]);
        // `status` is absent if the gateway sent no response.
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

/** The classes in the order of the numbers in src/js/error.rs. */
const kinds = [
  kind("InvalidOptionError", "invalid-option", "option", "accepted"),
  kind("WaitTimeoutError", "wait-timeout", "remainingMs"),
  kind("LeaseLostError", "lease-lost", "reason"),
  kind("ReentrancyError", "reentrancy", "reason"),
  kind("NotExecutedError", "not-executed", "status"),
  kind("GatewayRefusedError", "gateway-refused", "reason", "status"),
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
 * An error as the WebAssembly reports it; `errorOf` converts it to an error whose stack shows the
 * caller.
 */
class Failure {
  constructor(place, message, values) {
    Object.assign(this, { place, message, values });
  }
}

export const fail = (place, message, ...values) => new Failure(place, message, values);

/** The codes of errors that the runtime's own error about a request may have caused. */
const OF_THE_NETWORK = ["gateway-unreachable", "outcome-unknown", "not-executed"];

/**
 * Converts a failure to an error about an object, `{ kind, name, host }`. Any other value, such as
 * the reason of the caller's own signal, is returned as it is. The stack begins at the caller of
 * `entry`, or is the stack of `caller`, an error that was created when the call began. `cause` is
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

/** Returns the object and the host, for the end of a message. */
function where({ kind, name, host, redactNames }) {
  const object = name === undefined || redactNames ? kind : `${kind} ${JSON.stringify(name)}`;
  const parts = [object, host && `gateway ${host}`].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

/**
 * The names of the numbers of each `Snapshot`, in the order of src/js/counts.rs. A question mark
 * marks booleans.
 */
const snapshots = [
  ["locked?", "holdCount", "remainingMs", "lastToken"],
  ["available", "leases", "held"],
  ["available", "acquired", "total", "remainingMs", "areHeld?"],
];

/** Returns the state of an object at one moment, frozen. */
export const snapshot = (place, numbers) =>
  Object.freeze(
    Object.fromEntries(
      snapshots[place].map((name, i) => {
        const number = Number.isNaN(numbers[i]) ? null : numbers[i];
        return name.endsWith("?") ? [name.slice(0, -1), number === 1] : [name, number];
      }),
    ),
  );

/** Returns an event of a lease, frozen. */
export const situation = (type, reason, remainingMs) => Object.freeze({ type, reason, remainingMs });

/** Returns an event of a client, frozen. */
export const noticed = (type, byMs) => Object.freeze(byMs === undefined ? { type } : { type, byMs });

/** The error of the module, once it has failed; no function of it is called after that. */
let broken;
/** The functions that reject the pending calls. */
export const waiting = new Set();
/**
 * The controllers of the leases' signals. They are held weakly, so a signal that the caller has
 * dropped can be collected.
 */
let controllers = [];
let many = 64;

/** The object that each signal's error names, and the object whose signal is being created. */
const losses = new WeakMap();
let current = {};

/**
 * Returns the signal that `read` creates, whose error names the object `about`. It may be aborted
 * already.
 */
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
    // Older Workers have no `WeakRef`; there only calls report that the module has failed.
    if (typeof WeakRef === "undefined") return;
    controllers.push(new WeakRef(this));
    if (controllers.length < many) return;
    controllers = controllers.filter((one) => one.deref());
    many = 64 + 2 * controllers.length;
  }
}

/**
 * Stops the use of the module after an exception: its memory may be half changed. Every pending
 * call and every signal gets the error.
 */
function breaks(cause) {
  broken = new BrokenError("the package has failed inside and does nothing any more; what it held ends with its lease");
  setCause(broken, cause);
  for (const reject of waiting) reject(broken);
  for (const one of controllers) one.deref()?.abort(broken);
}

/** Wraps the module's functions so that none is called after one has thrown. */
export const watched = (exports) =>
  Object.fromEntries(
    Object.entries(exports).map(([name, value]) => {
      if (typeof value !== "function") return [name, value];
      // Callbacks of the runtime have no caller to throw to.
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
