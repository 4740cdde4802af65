// Classes that extend Error can be made in JavaScript alone. Names and fields stand in ../../pkg/index.d.ts.

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

export const InvalidOptionError = kind("InvalidOptionError", "invalid-option", "option", "accepted");
export const WaitOverError = kind("WaitOverError", "wait-over", "remainingMs");
export const LeaseLostError = kind("LeaseLostError", "lease-lost", "reason");
export const GatewayRefusedError = kind("GatewayRefusedError", "gateway-refused", "reason");
export const GatewayUnreachableError = kind("GatewayUnreachableError", "gateway-unreachable");
export const GatewayTooSlowError = kind("GatewayTooSlowError", "gateway-too-slow");
export const OutcomeUnknownError = kind("OutcomeUnknownError", "outcome-unknown", "freeInMs");
