/**
 * The platform's `LockManager` (Web Locks) over an edgelatch client: `navigator.locks` across
 * machines. `docs/web-locks.md` has the differences.
 */

import type { Lease, Locks } from "./index.js";

/** The options of {@link webLocks}. */
export interface WebLocksOptions {
  /**
   * The counterpart of the platform's origin: all clients of one Redis that use the same namespace
   * share its locks. Redis' keys for a lock begin with `el:{namespace}:`.
   */
  namespace: string;
  /**
   * A text that identifies this client in {@link WebLockManager.query}: up to 64 bytes of UTF-8
   * without control characters. Default: a random one.
   */
  clientId?: string | undefined;
  /**
   * How long a lock is still held after its holder was last able to renew it, 1 000 to 86 400 000;
   * default 30 000. It is renewed three times in it. With a shorter time a dead holder is followed
   * sooner, and a holder learns sooner that its lock was stolen; it costs more requests. A hidden
   * page, whose timers run once a minute, needs 180 000.
   */
  leaseMs?: number | undefined;
}

/** A held lock, the argument of a callback. */
export interface WebLock {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
  /**
   * The hold in Redis; the platform has none. Its `token` is a fencing token, and its `signal`
   * aborts when the lock is stolen or lost.
   */
  readonly lease: Lease;
}

/** The options of a request, as on the platform. */
export interface WebLockOptions {
  /** Default `exclusive`. */
  mode?: "exclusive" | "shared" | undefined;
  /** Calls the callback with null if the lock cannot be granted at once. Default false. */
  ifAvailable?: boolean | undefined;
  /** Breaks the name's held locks, and is granted before all waiting requests. Default false. */
  steal?: boolean | undefined;
  /** Aborts the wait; ignored once the lock is granted. */
  signal?: AbortSignal | undefined;
}

/** A held lock or a waiting request. */
export interface WebLockInfo {
  name: string;
  mode: "exclusive" | "shared";
  clientId: string;
}

/** The held locks and the waiting requests of a namespace. */
export interface WebLockManagerSnapshot {
  held: WebLockInfo[];
  /** The requests of one name are in the order in which they are granted. */
  pending: WebLockInfo[];
}

/** The locks of a namespace. It has the shape of the platform's `LockManager`. */
export interface WebLockManager {
  /**
   * Requests a lock, waits until it is granted, and calls the callback. The lock is held until the
   * callback's promise settles; then the promise of the request resolves or rejects as it does.
   *
   * Rejects with a `DOMException` as on the platform: `AbortError` if the lock was stolen, or lost
   * because Redis was not reached in time; `NotSupportedError` for a name that begins with `-`, for
   * `steal` with `ifAvailable`, `signal` or the mode `shared`, and for `signal` with `ifAvailable`.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError |
   * OutcomeUnknownError} the request failed.
   * @throws {QueueFullError} 10 000 requests wait for this lock.
   * @throws {InvalidOptionError} the name is too long for Redis: 512 bytes with the namespace.
   */
  request<T>(name: string, callback: (lock: WebLock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions & { ifAvailable?: false | undefined }, callback: (lock: WebLock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions, callback: (lock: WebLock | null) => T): Promise<Awaited<T>>;
  /**
   * Returns the held locks and the waiting requests of all clients of the namespace.
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  query(): Promise<WebLockManagerSnapshot>;
}

/**
 * Returns the lock manager of a namespace. `client` is one that `connect` returned, not an owner:
 * requests never share a hold.
 * @throws {TypeError} `client` is no edgelatch client, or `options` are not valid.
 * @throws {InvalidOptionError} the namespace is too long, or `clientId` is not valid.
 */
export function webLocks(client: Locks, options: WebLocksOptions): WebLockManager;
