/**
 * Redisson's distributed locks over HTTP.
 *
 * Every duration is a whole number of milliseconds. Bad input rejects with {@link InvalidOptionError} before anything is
 * sent. No message of any error holds the gateway's token, an owner id or a script.
 */

/** What {@link connect} needs to know. */
export interface ConnectOptions {
  /** The gateway's address: `https://…`, or `http://` on loopback. No user, query or fragment in it. White space is cut off. */
  url: string;
  /** The gateway's bearer token. White space around it is cut off. */
  token: string;
  /** Allows `http://` beyond loopback: for private networks only, since the token travels in the clear. Default false. */
  allowHttp?: boolean;
  /** What carries the requests. Default: `globalThis.fetch`, looked up at each request. */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
  /** Longest time one request may take, 50 to 60 000; default 5 000. A shorter one finds a hanging gateway sooner. */
  requestTimeoutMs?: number;
  /**
   * Whether scripts start with Upstash's key-locking line. Default `auto`: on for hosts below `upstash.io`, and off
   * from the first answer that refuses it.
   */
  keyLocking?: "auto" | "on" | "off";
  /** How a release is announced. `sharded` or `both` when the Java side runs on a Redis Cluster. Default `plain`. */
  publish?: "plain" | "sharded" | "both";
}

/** What {@link connect.fromEnv} may be told beside the environment. */
export interface FromEnvOptions extends Partial<Omit<ConnectOptions, "url" | "token">> {
  /** Put before each variable's name: `{ prefix: "LOCKS_" }` reads `LOCKS_KV_REST_API_URL`. */
  prefix?: string;
}

/**
 * Describes a gateway. Sends nothing, starts nothing: a client made at module level serves every request of a Worker.
 *
 * @throws {InvalidOptionError}
 */
export function connect(options: ConnectOptions): Locks;
export namespace connect {
  /**
   * Reads `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, else `KV_REST_API_URL` and `KV_REST_API_TOKEN`,
   * from `env` (a Worker's bindings) or from `process.env`.
   *
   * @throws {InvalidOptionError} names the variable that is missing or unusable.
   */
  function fromEnv(env?: object, options?: FromEnvOptions): Locks;
}

/** A client of one gateway. */
export interface Locks {
  /**
   * The lock of this name, as Redisson's `getLock(name)`. A name is 1 to 512 bytes of UTF-8 without control
   * characters.
   *
   * @throws {InvalidOptionError}
   */
  lock(name: string): Lock;
  /**
   * An owner whose acquisitions of one lock share one hold: re-entry, counted here and not in Redis. Make one for each task
   * (in a Worker, for each request): it is not for sharing.
   */
  owner(): Owner;
}

/** Acquisitions made through one owner re-enter each other. */
export interface Owner {
  /** @throws {InvalidOptionError} */
  lock(name: string): Lock;
}

/** How long a hold lasts. */
export interface LeaseOptions {
  /**
   * The lease, 100 to 86 400 000. When given, the hold ends after it unless you call {@link Lease.renew}. When not, it
   * is 30 000 and is renewed every third of it until the release.
   */
  leaseMs?: number;
}

/** How long to wait, and with what means. */
export interface AcquireOptions extends LeaseOptions {
  /** Longest wait, 1 to 86 400 000; default 30 000. `"until-aborted"` needs a `signal`. */
  waitMs?: number | "until-aborted";
  /**
   * Ends the wait and undoes a grant that is still on its way. The promise rejects with the signal's reason, also when the
   * undoing could not be confirmed; then the lease runs out by itself.
   */
  signal?: AbortSignal;
  /**
   * Most requests the wait may spend, 3 to 10 000; default 40 for a timed wait, none for `"until-aborted"`. A smaller
   * one stretches the pauses between tries. (A Worker on the free plan has 50 for each request it serves.) One more is
   * sent for each script that Redis does not know yet.
   */
  maxRequests?: number;
}

/** A distributed re-entrant lock. */
export interface Lock {
  readonly name: string;
  /**
   * Takes the lock if it is free, in one request. (With a gateway that does not answer it gives up after three attempts, and
   * three more to undo them.)
   *
   * @returns the lease, or null when somebody else holds the lock.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError | OutcomeUnknownError | InvalidOptionError}
   */
  tryAcquire(options?: LeaseOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Waits for the lock.
   *
   * @throws {WaitOverError} somebody else held it for the whole wait.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError | OutcomeUnknownError | InvalidOptionError}
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires, calls `work`, releases, and answers what `work` answered.
   *
   * @throws what `work` throws; what `acquire` throws; {@link LeaseLostError} when `work` ended well but the lease did not
   * last until its end.
   */
  run<T>(work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(options: AcquireOptions, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /**
   * Ends whatever hold there is, whoever holds it.
   *
   * @returns whether the lock was held.
   */
  forceRelease(): Promise<boolean>;
  /** What Redis says of the lock now, read from the primary. */
  inspect(): Promise<LockState>;
}

/** What Redis says of a lock. */
export interface LockState {
  readonly locked: boolean;
  /** The hold count in Redis: 1 for ours, more for a Java thread that re-entered, 0 when free. */
  readonly holdCount: number;
  /** Until the hold runs out; null when the lock is free or its hold has no end. */
  readonly remainingMs: number | null;
  /** The newest fencing token of this name, 0 when there is none. */
  readonly lastToken: number;
}

/**
 * A hold on a lock, for a time.
 *
 * Keep it for as long as you want the hold: one that nothing refers to any more is not renewed, and its hold runs out.
 */
export interface Lease {
  readonly name: string;
  /** The fencing token: rises with every grant of this name. Send it with each write that the lock protects. */
  readonly token: number;
  /** Aborted with a {@link LeaseLostError} when the lease can no longer be trusted. Not aborted by a release. */
  readonly signal: AbortSignal;
  /** How many acquisitions of the same {@link Owner} share this hold. */
  readonly holdCount: number;
  /** Milliseconds for which the hold can still be trusted; 0 when it is lost or released. Asks nobody. */
  remaining(): number;
  /**
   * Asks Redis whether the hold is still there.
   *
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  isHeld(): Promise<boolean>;
  /**
   * Prolongs the hold to at least its lease time from now.
   *
   * @throws {LeaseLostError} the hold is gone.
   * @throws {GatewayRefusedError | GatewayUnreachableError | InvalidOptionError} the hold stands as it was.
   */
  renew(options?: LeaseOptions): Promise<void>;
  /**
   * Ends the hold. Calling it again answers the same, or asks Redis again after an error.
   *
   * @returns `lost` when the hold had ended before.
   * @throws {OutcomeUnknownError} no answer came; the lock is free after `freeInMs` at the latest.
   * @throws {GatewayRefusedError}
   */
  release(): Promise<"released" | "lost">;
  /** Releases; rejects with {@link LeaseLostError} when the lease did not last until here. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Every error of this package, except the reason of a signal of yours. */
export class EdgelatchError extends Error {
  readonly code: ErrorCode;
}
/** Stable names of the kinds of error. */
export type ErrorCode =
  | "invalid-option"
  | "wait-over"
  | "lease-lost"
  | "gateway-refused"
  | "gateway-unreachable"
  | "gateway-too-slow"
  | "outcome-unknown";

/** A value is not of the accepted kind or range. Nothing was sent. */
export class InvalidOptionError extends EdgelatchError {
  readonly code: "invalid-option";
  /** The option's name. */
  readonly option: string;
  /** What would be accepted. */
  readonly accepted: string;
}
/** Somebody else held the lock for the whole wait. */
export class WaitOverError extends EdgelatchError {
  readonly code: "wait-over";
  /** Until the present hold runs out, null when it has no end. */
  readonly remainingMs: number | null;
}
/** The hold ended before it was released. */
export class LeaseLostError extends EdgelatchError {
  readonly code: "lease-lost";
  /** `expired`: no renewal was confirmed in time. `gone`: Redis says that the hold is not there. */
  readonly reason: "expired" | "gone";
}
/** The gateway or Redis answered no. Nothing was done. */
export class GatewayRefusedError extends EdgelatchError {
  readonly code: "gateway-refused";
  readonly reason:
    | "unauthorized"
    | "out-of-memory"
    | "wrong-type"
    | "token-range"
    | "unavailable"
    | "other";
}
/** No usable answer came. After an acquisition nothing is held; a renewal or a forced release may have been done. */
export class GatewayUnreachableError extends EdgelatchError {
  readonly code: "gateway-unreachable";
}
/** The lock was granted, but too little of the lease was left when the answer came. Nothing is held. */
export class GatewayTooSlowError extends EdgelatchError {
  readonly code: "gateway-too-slow";
}
/** No answer came, also not to the undoing of the request: a hold may be there. */
export class OutcomeUnknownError extends EdgelatchError {
  readonly code: "outcome-unknown";
  /** After this time no hold of this call is left. */
  readonly freeInMs: number;
}
