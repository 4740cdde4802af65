// The errors of the package: part of index.d.ts.

// Makes this a module, which exports only what is marked so below.
export {};

/** The properties of every error. */
declare abstract class Base extends Error {
  abstract readonly code: string;
  /**
   * The name of the lock, semaphore or latch; of several locks, their names, separated by commas.
   * Absent if the call concerns none, and with `redactNames`.
   */
  readonly lock?: string;
  /** The guarded key, in errors of a guard. Absent with `redactNames`. */
  readonly key?: string;
  /** The gateway's host, with its port if it is not the default. */
  readonly host?: string;
  /**
   * The HTTP status of a response that is not usable or that refuses the request. Absent without a
   * response, and if a refusal of Redis has a success status, as in a pipeline.
   */
  readonly status?: number;
  /**
   * The runtime's error, if it threw one; a `TimeoutError` if a request took longer than
   * `requestTimeoutMs`. In Node, Deno and Bun the message ends with its reason, such as
   * `ECONNREFUSED`.
   */
  readonly cause?: unknown;
}
/**
 * Any error of this package. A call rejects with one of these errors, or with the reason of your
 * own signal. `error instanceof EdgelatchError` narrows to this union, and a comparison of
 * `error.code` to one class; both work across copies of the package.
 */
export type EdgelatchError =
  | InvalidOptionError
  | WaitTimeoutError
  | QueueFullError
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
/** The stable names of the kinds of error. */
export type ErrorCode = EdgelatchError["code"];

/** An argument has the wrong type or is out of range. Nothing was sent. */
export class InvalidOptionError extends Base {
  readonly code: "invalid-option";
  /** The option's name. */
  readonly option: string;
  /** The accepted values. */
  readonly accepted: string;
}
/**
 * The wait ended before the lock was free, enough permits were available, or the latch was open.
 * Nothing is held.
 */
export class WaitTimeoutError extends Base {
  readonly code: "wait-timeout";
  /** Milliseconds until the other client's hold expires; null if it never does. */
  readonly remainingMs: number | null;
}
/**
 * The queue is full: that of a fair lock has 2 000 waiters, that of a fair read-write lock
 * {@link FairReadWriteOptions.maxWaiters}. Nothing is held or queued.
 */
export class QueueFullError extends Base {
  readonly code: "queue-full";
}
/**
 * The semaphore does not exist. Create it with `trySetPermits`; to wait until another client adds
 * permits, as Redisson does, create it with `addPermits(0)`. Nothing is held. (A latch that does
 * not exist is open, as in Redisson.)
 */
export class NotSetUpError extends Base {
  readonly code: "not-set-up";
}
/** The hold ended before it was released. */
export class LeaseLostError extends Base {
  readonly code: "lease-lost";
  /**
   * `expired`: no renewal was confirmed in time. `gone`: Redis no longer has the hold. `stolen`:
   * another client took the lock ({@link FairReadWriteLock.steal}).
   */
  readonly reason: "expired" | "gone" | "stolen";
}
/** This owner already holds the lock in a way that excludes this acquisition. Nothing was sent. */
export class ReentrancyError extends Base {
  readonly code: "reentrancy";
  /**
   * `held`: the lock is not re-entrant. `reads`: the owner holds only the read lock, and its
   * acquisition of the write lock would wait for that hold.
   */
  readonly reason: "held" | "reads";
}
/** The operation was not applied and never will be; it is safe to retry. */
export class NotExecutedError extends Base {
  readonly code: "not-executed";
}
/**
 * The guard rejected a write because of the lease's fencing token. Nothing was written, unless the
 * network delivered the request twice and a copy of it came before the newer write.
 */
export class StaleTokenError extends Base {
  readonly code: "stale-token";
  /**
   * `superseded`: the guard has seen a newer token. `too-old`: the token is older than `memoryMs`.
   * `token-ahead`: the token is more than a minute ahead of Redis' clock.
   */
  readonly reason: "superseded" | "too-old" | "token-ahead";
  /** The newest token that the guard has seen, for `superseded`; otherwise null. */
  readonly newest: number | null;
}
/** The script of a {@link Lease.eval} call failed, or JSON cannot represent its result. */
export class ScriptFailedError extends Base {
  readonly code: "script-failed";
}
/**
 * The package has failed internally: its WebAssembly trapped, or a function of the runtime that
 * never throws has thrown. Every pending and later call rejects with this error, and the signals of
 * leases abort with it. Holds expire in Redis with their leases. Load the package anew: restart the
 * program or reload the page. `cause` is the error that was thrown.
 */
export class BrokenError extends Base {
  readonly code: "broken";
}
/**
 * The WebAssembly module cannot start in this environment: the message states the cause and what to
 * change. {@link connect} throws this error; nothing was sent. `cause` is the runtime's error.
 */
export class StartError extends Base {
  readonly code: "start-failed";
}
/**
 * The gateway or Redis refused the request, which had no effect. For two reasons the client
 * released a grant. `not-replicated`: too few replicas have it. `token-regressed`: its fencing
 * token is older than an earlier one of this client for the same name, because Redis' clock was set
 * back and its tokens are lost, or because another Redis, which is behind, responds.
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
 * The lock was granted, but the response arrived when less than half of the lease was left. The
 * client released the grant: nothing is held.
 */
export class GatewayTooSlowError extends Base {
  readonly code: "gateway-too-slow";
}
/**
 * Whether Redis has a hold of this call is unknown. The client has tried to find out: it sent each
 * request several times, and no usable response came (`cause`, `status`).
 *
 * - From an acquisition: neither the requests nor their cancellation were confirmed. Redis may have
 *   granted one, or may grant one that is still under way. There is no lease, and {@link Lock.run}
 *   has not called its work.
 * - From {@link Lease.release}: the hold may be released, or may last until its lease ends. The
 *   lease is not renewed any more. {@link Lock.run} and `await using` do not report this case.
 *
 * Browsers and Workers do not tell a refused connection, an unknown host or a failed TLS handshake
 * from a connection that broke after the request: there a wrong URL causes this error too.
 *
 * A hold that is left excludes other clients, and your own next attempt, for at most `freeInMs`.
 * No client uses it, so no data is at risk. Do not start the work (after a release,
 * stop it); check the gateway; call `acquire` again, which waits for the end of such a hold like
 * for that of any other client, or `release` again, which repeats the request. If the lock must be
 * free sooner, {@link Lock.forceRelease} ends the hold of whichever client has it, but does not
 * stop a request that is still under way.
 */
export class OutcomeUnknownError extends Base {
  readonly code: "outcome-unknown";
  /**
   * The upper bound in milliseconds, counted from the rejection: after that time no hold of this
   * call exists, and none can be granted any more. It is the time until Redis refuses the requests
   * of this call, plus the lease: up to two and a half minutes after a wait of 30 s, 12 minutes and
   * more after a wait until aborted, and ten minutes plus the lease if the client had not seen this
   * Redis' clock before. The hold usually ends much sooner. The bound is not valid if Redis' clock
   * is set back.
   */
  readonly freeInMs: number;
}
