// What the WebAssembly hands out and JavaScript alone can make in few bytes: errors, whose classes extend Error (errors.d.ts says what
// they mean), and objects that do not change.

export class EdgelatchError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** One kind of error: its code, and the names of what its constructor takes after the message. */
function kind(name, code, ...fields) {
  const Kind = class extends EdgelatchError {
    constructor(message, ...values) {
      super(code, message);
      fields.forEach((field, i) => (this[field] = values[i] ?? null));
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
  kind("WaitOverError", "wait-over", "remainingMs"),
  kind("LeaseLostError", "lease-lost", "reason"),
  kind("NotAgainError", "not-again", "reason"),
  kind("NotDoneError", "not-done"),
  kind("GatewayRefusedError", "gateway-refused", "reason"),
  kind("GatewayUnreachableError", "gateway-unreachable"),
  kind("GatewayTooSlowError", "gateway-too-slow"),
  kind("OutcomeUnknownError", "outcome-unknown", "freeInMs"),
  kind("StaleTokenError", "stale-token", "reason", "newest"),
  kind("ScriptFailedError", "script-failed"),
];
export const [
  InvalidOptionError, WaitOverError, LeaseLostError, NotAgainError, NotDoneError, GatewayRefusedError, GatewayUnreachableError,
  GatewayTooSlowError, OutcomeUnknownError, StaleTokenError, ScriptFailedError,
] = kinds;

/** What the WebAssembly makes its errors by. */
export const fail = (place, message, ...values) => new kinds[place](message, ...values);

/** In the order of `Snapshot` in src/js/counts.rs; a question mark stands behind what is true or false. */
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
export const waking = (type) => Object.freeze({ type });
