// The errors: part of index.d.ts.

// What is not exported below stays inside.
export {};

/** What all errors have in common. */
declare abstract class Base extends Error {
  abstract readonly code: string;
  /** The lock, semaphore or latch; absent where none is concerned, and with `redactNames`. */
  readonly lock?: string;
  /** The guarded key, for a guard. */
  readonly key?: string;
  /** The gateway's host, with its port if it is not the default. */
  readonly host?: string;
  /** The HTTP status of the response that could not be used, if there was one. */
  readonly status?: number;
  /**
   * The runtime's own error, if there is one; a `TimeoutError` when a request took longer than
   * `requestTimeoutMs`.
   */
  readonly cause?: unknown;
}
/**
 * Every error of this package, except the reason of a signal of yours. `error instanceof
 * EdgelatchError` and a comparison of `error.code` narrow to one class; they hold across copies of
 * the package.
 */
export type EdgelatchError =
  | InvalidOptionError
  | WaitTimeoutError
  | LeaseLostError
  | ReentrancyError
  | NotExecutedError
  | StaleTokenError
  | ScriptFailedError
  | GatewayRefusedError
  | GatewayUnreachableError
  | GatewayTooSlowError
  | OutcomeUnknownError
  | NotSetUpError
  | BrokenError
  | StartError;
export const EdgelatchError: {
  readonly prototype: EdgelatchError;
  [Symbol.hasInstance](value: unknown): value is EdgelatchError;
};
/** Stable names of the kinds of error. */
export type ErrorCode = EdgelatchError["code"];

/** A value is not of the accepted kind or range. Nothing was sent. */
export class InvalidOptionError extends Base {
  readonly code: "invalid-option";
  /** The option's name. */
  readonly option: string;
  /** What would be accepted. */
  readonly accepted: string;
}
/**
 * Another client held the lock for the whole wait, too few permits were available, or the latch was
 * closed. Nothing is held.
 */
export class WaitTimeoutError extends Base {
  readonly code: "wait-timeout";
  /** Milliseconds until the present hold runs out; null when it has no end. */
  readonly remainingMs: number | null;
}
/**
 * There is no semaphore of this name (a latch that does not exist is open, as in Redisson): create
 * it with `trySetPermits`. To wait until another client adds permits, as Redisson does, create it
 * with `addPermits(0)`. Nothing is held.
 */
export class NotSetUpError extends Base {
  readonly code: "not-set-up";
}
/** The hold ended before it was released. */
export class LeaseLostError extends Base {
  readonly code: "lease-lost";
  /** `expired`: no renewal was confirmed in time. `gone`: Redis says that the hold is not there. */
  readonly reason: "expired" | "gone";
}
/**
 * This owner holds what it asks for in a way that does not let it take it again. Nothing was sent.
 */
export class ReentrancyError extends Base {
  readonly code: "reentrancy";
  /** `held`: the lock is not re-entrant. `reads`: it reads, and would wait for itself to write. */
  readonly reason: "held" | "reads";
}
/** The operation was not applied and never will be; it is safe to retry. */
export class NotExecutedError extends Base {
  readonly code: "not-executed";
}
/** A guard refused a write. Nothing was written. */
export class StaleTokenError extends Base {
  readonly code: "stale-token";
  /**
   * `superseded`: a newer token was seen. `too-old`: older than the guard remembers. `token-ahead`:
   * more than a minute ahead of Redis' clock.
   */
  readonly reason: "superseded" | "too-old" | "token-ahead";
  /** The newest token that was seen, when a newer one was. */
  readonly newest: number | null;
}
/** Your own script failed. */
export class ScriptFailedError extends Base {
  readonly code: "script-failed";
}
/**
 * The package has failed inside: its WebAssembly has trapped, or something of the runtime's that
 * never throws has thrown. Nothing of it is used any more: every call ends with this error, and so
 * do those that were under way; signals of leases abort with it. What was held ends in Redis with
 * its lease. Load the package anew, that is, restart the program or reload the page. `cause` says
 * what happened.
 */
export class BrokenError extends Base {
  readonly code: "broken";
}
/**
 * The WebAssembly module cannot start here: the message says why and what to change. Thrown by
 * {@link connect}; nothing was sent. `cause` is the runtime's own error.
 */
export class StartError extends Base {
  readonly code: "start-failed";
}
/**
 * The gateway or Redis answered no. Nothing was done. For two reasons what was granted was given
 * back: `not-replicated`, and `token-regressed`, where the fencing token is older than one that
 * this client was granted before for the same name. Then Redis' clock was set back and its tokens
 * are lost, or another Redis answers, which is behind.
 */
export class GatewayRefusedError extends Base {
  readonly code: "gateway-refused";
  readonly reason:
    | "unauthorized"
    | "out-of-memory"
    | "wrong-type"
    | "token-range"
    | "unavailable"
    | "not-a-gateway"
    | "unsupported"
    | "not-replicated"
    | "token-regressed"
    | "other";
}
/**
 * No usable response came. After an acquisition nothing is held; a renewal or a forced release may
 * have been applied.
 */
export class GatewayUnreachableError extends Base {
  readonly code: "gateway-unreachable";
}
/**
 * The lock was granted, but too little of the lease was left when the response came. Nothing is
 * held.
 */
export class GatewayTooSlowError extends Base {
  readonly code: "gateway-too-slow";
}
/** No response came, neither to the request nor to its undoing: a hold may be there. */
export class OutcomeUnknownError extends Base {
  readonly code: "outcome-unknown";
  /**
   * After this time, from now on, no hold of this call is left, and none can be granted any more:
   * the time until Redis refuses what was asked, and the lease. Of a wait of 30 s up to some two
   * and a half minutes, of one without an end up to 12 minutes and more; ten minutes and the lease
   * where the client had not heard from this Redis before. While Redis' clock is not set back.
   */
  readonly freeInMs: number;
}
