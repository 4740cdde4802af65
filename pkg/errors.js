// Creates the JavaScript values that the WebAssembly returns: errors, whose classes extend Error
// (errors.d.ts documents them), and frozen objects. Creating them here takes fewer bytes.

/** Marks errors of every copy of the package in a process: `import` and `require` load one each. */
const BRAND = Symbol.for("edgelatch.error");
const isBranded = (value) => typeof value === "object" && value !== null && BRAND in value;

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
    return this === EdgelatchError ? isBranded(value) : Function.prototype[Symbol.hasInstance].call(this, value);
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
function errorClass(name, code, ...fields) {
  const Class = class extends EdgelatchError {
    constructor(message, ...values) {
      super(code, message);
      fields.forEach((field, i) => {
        if (field === "cause") setCause(this, values[i]);
        // `status` is absent if the gateway sent no response.
        else if (field !== "status" || typeof values[i] === "number") this[field] = values[i] ?? null;
      });
    }

    static [Symbol.hasInstance](value) {
      return this === Class ? isBranded(value) && value.code === code : super[Symbol.hasInstance](value);
    }
  };
  // A minifier may rename the class; `name` is part of the interface.
  Object.defineProperty(Class, "name", { value: name });
  Object.defineProperty(Class.prototype, "name", { value: name });
  return Class;
}

/** The classes. src/js/numbers.rs reads their numbers from this list. */
const classes = [
  errorClass("InvalidOptionError", "invalid-option", "option", "accepted"),
  errorClass("WaitTimeoutError", "wait-timeout", "remainingMs"),
  errorClass("LeaseLostError", "lease-lost", "reason"),
  errorClass("ReentrancyError", "reentrancy", "reason"),
  errorClass("NotExecutedError", "not-executed", "status"),
  errorClass("GatewayRefusedError", "gateway-refused", "reason", "status"),
  errorClass("GatewayUnreachableError", "gateway-unreachable", "status"),
  errorClass("GatewayTooSlowError", "gateway-too-slow"),
  errorClass("OutcomeUnknownError", "outcome-unknown", "freeInMs", "status"),
  errorClass("StaleTokenError", "stale-token", "reason", "newest"),
  errorClass("ScriptFailedError", "script-failed"),
  errorClass("BrokenError", "broken", "cause"),
  errorClass("StartError", "start-failed", "cause"),
  errorClass("NotSetUpError", "not-set-up"),
  errorClass("QueueFullError", "queue-full"),
];
export const [
  InvalidOptionError, WaitTimeoutError, LeaseLostError, ReentrancyError, NotExecutedError, GatewayRefusedError, GatewayUnreachableError,
  GatewayTooSlowError, OutcomeUnknownError, StaleTokenError, ScriptFailedError, BrokenError, StartError, NotSetUpError, QueueFullError,
] = classes;

/**
 * The reason why a call failed; `errorOf` converts it to an error whose stack shows the caller.
 */
class Failure {
  constructor(Class, message, values) {
    Object.assign(this, { Class, message, values });
  }
}

export const fail = (Class, message, ...values) => new Failure(Class, message, values);

/** Returns the failure with the number of a class, as the WebAssembly reports it. */
export const failureOf = (index, ...values) => fail(classes[index], ...values);

/** The errors that the runtime's own error about a request may have caused. */
const NETWORK_CLASSES = [GatewayUnreachableError, OutcomeUnknownError, NotExecutedError];

/** The failure of a response that is not the package's own. */
export const invalidResponse = () =>
  fail(GatewayUnreachableError, "the gateway's response is not valid (HTTP 200)", 200);

/**
 * Converts a failure to an error that names its `subject`, `{ kind, name, host }`. Returns any
 * other value, such as the reason of the caller's own signal, as it is. The stack begins at the
 * caller of `entry`, or is the stack of `caller`, an error that was created when the call began.
 * `cause` is the runtime's last error at this host.
 */
export function errorOf(failure, subject, entry, cause, caller) {
  if (!(failure instanceof Failure)) return failure;
  const { Class, message, values } = failure;
  if (Class === InvalidOptionError) subject = {};
  if (!NETWORK_CLASSES.includes(Class)) cause = undefined;
  const error = new Class(message + describe(subject, reasonOf(cause)), ...values);
  const { kind, host } = subject;
  const name = subject.redactNames ? undefined : subject.name;
  if (name !== undefined) error[kind === "guard" ? "key" : "lock"] = name;
  if (host !== undefined) error.host = host;
  if (cause) setCause(error, cause);
  if (caller) error.stack = caller.stack.replace(/^.*/, String(error));
  else Error.captureStackTrace?.(error, entry);
  return error;
}

/**
 * Returns the reason of a runtime's error about a request: the code of the system or of TLS in Node
 * and Bun, the end of the message in Deno. Neither contains the address of the request.
 */
function reasonOf(cause) {
  try {
    const { code, message } = cause.cause ?? cause;
    return /^[A-Z][A-Z\d_]+$/.test(code) ? code : /client error \(Connect\): (.+)/.exec(message)?.[1];
  } catch {}
}

/** Returns the object, the host and the reason, for the end of a message. */
function describe({ kind, name, host, redactNames }, reason) {
  const object = name === undefined || redactNames ? kind : `${kind} ${JSON.stringify(name)}`;
  const parts = [object, host && `gateway ${host}`, reason].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

/**
 * The names of the values of each `Snapshot`. src/js/numbers.rs reads the snapshots' own numbers
 * from this list.
 */
const snapshots = [
  ["locked", "holdCount", "remainingMs", "lastToken"],
  ["available", "leases", "held"],
  ["available", "acquired", "total", "remainingMs", "areHeld"],
  ["locked", "holdCount", "remainingMs", "lastToken", "mode", "waiters", "exclusiveWaiters"],
];

/** Returns the state of an object at one moment, frozen. */
export const snapshot = (index, ...values) =>
  Object.freeze(Object.fromEntries(snapshots[index].map((name, i) => [name, values[i]])));
