/// <reference lib="esnext.disposable" />
// Locks, semaphores, latches, guards and leases: part of index.d.ts.

import type { AcquireOptions, GrantOptions } from "./options.js";

/** A distributed lock of any kind. */
export interface Lock {
  /**
   * The lock's name; of several locks, the name of the first in the order in which all clients
   * acquire them. Errors name all of them.
   */
  readonly name: string;
  /**
   * Acquires the lock if it is free, in one request. (If the gateway does not respond, the call
   * rejects after three attempts, and three more to undo them.)
   * @returns the lease, or null if another client holds the lock.
   * @throws {ReentrancyError} this owner cannot acquire it now.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError |
   * OutcomeUnknownError | InvalidOptionError}
   */
  tryAcquire(options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Waits for the lock and acquires it.
   * @throws {WaitTimeoutError} another client held it for the whole wait.
   * @throws {ReentrancyError} this owner cannot acquire it now.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError |
   * OutcomeUnknownError | InvalidOptionError}
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires the lock, calls `work`, releases the lock, and returns the result of `work`.
   * @throws the errors of `work` and of {@link Lock.acquire}.
   * @throws {LeaseLostError} `work` succeeded, but the lease did not last until its end.
   */
  run<T>(work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(options: AcquireOptions, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /**
   * Ends the hold of any client.
   * @returns whether the lock was held.
   * @throws {NotExecutedError | GatewayRefusedError | GatewayUnreachableError}
   */
  forceRelease(): Promise<boolean>;
  /**
   * Returns the state of the lock, read from the primary.
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  inspect(): Promise<LockState>;
}

/** The two sides of a read-write lock. */
export interface ReadWriteLock {
  /** The lock that readers share. */
  readonly read: Lock;
  /** The lock that one writer holds while no other client reads or writes. */
  readonly write: Lock;
}

/** The state of a lock in Redis. */
export interface LockState {
  readonly locked: boolean;
  /**
   * The hold count in Redis: 1 for a client of this package, more for a Java thread that
   * re-entered, 0 if the lock is free. For a side of a read-write lock it is the sum over all
   * holders; in a record of more than 1 000 fields each holder counts once.
   */
  readonly holdCount: number;
  /** Milliseconds until the hold expires; null if the lock is free or the hold never expires. */
  readonly remainingMs: number | null;
  /** The newest fencing token of this name; 0 if there is none. */
  readonly lastToken: number;
}

/**
 * A semaphore: a number of permits that clients share. `trySetPermits` or `addPermits` creates it.
 */
export interface Semaphore {
  /** The semaphore's name. */
  readonly name: string;
  /**
   * Waits for permits and acquires them.
   * @param permits 1 to 2 147 483 647; default 1.
   * @throws as {@link Lock.acquire}; {@link NotSetUpError} if the semaphore does not exist.
   */
  acquire(permits?: number, options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires permits if enough are available, else returns null.
   * @param permits as in {@link Semaphore.acquire}.
   * @throws as {@link Lock.tryAcquire}
   */
  tryAcquire(permits?: number, options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Acquires permits, calls `work`, releases the permits, and returns the result of `work`.
   * @throws as {@link Lock.run}
   */
  run<T>(permits: number | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(permits: number | undefined, options: AcquireOptions | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /**
   * Adds permits, or removes them if `permits` is negative, and returns the new number of available
   * ones. Creates the semaphore if it does not exist.
   * @param permits -2 147 483 647 to 2 147 483 647.
   * @throws {NotExecutedError | GatewayRefusedError | GatewayUnreachableError | InvalidOptionError}
   * `GatewayRefusedError` with `LIMIT` if the number would leave the range of a Java `int`.
   */
  addPermits(permits: number): Promise<number>;
  /**
   * Makes permits available that no lease of this package holds: to release the permits of a lease,
   * call {@link Lease.release}.
   * @param permits 1 to 2 147 483 647; default 1.
   * @throws as {@link Semaphore.addPermits}
   */
  release(permits?: number): Promise<void>;
  /** Makes permits available if the semaphore exists, and returns whether it does. */
  releaseIfExists(permits?: number): Promise<boolean>;
  /** Removes all available permits, and returns their number. */
  drainPermits(): Promise<number>;
  /**
   * Creates the semaphore, for `lifeMs` (1 to 315 360 000 000; default for ever). Returns false if
   * it exists.
   * @param permits 0 to 2 147 483 647.
   * @throws as {@link Semaphore.addPermits}
   */
  trySetPermits(permits: number, options?: { lifeMs?: number }): Promise<boolean>;
  /** Returns the number of available permits. */
  availablePermits(): Promise<number>;
  /** Returns the state of the semaphore. */
  inspect(): Promise<SemaphoreState>;
  /**
   * Releases the permits of all leases of this package, of any client, and returns whether there
   * were any.
   */
  forceRelease(): Promise<boolean>;
}

/** The state of a semaphore in Redis. */
export interface SemaphoreState {
  /** The number of available permits; negative after more were removed than there were. */
  readonly available: number;
  /** The number of leases of this package. */
  readonly leases: number;
  /**
   * The number of permits of these leases. Redis has no record of the permits that Java clients
   * hold.
   */
  readonly held: number;
}

/** A semaphore whose permits each have an id and, optionally, an expiry. */
export interface PermitExpirableSemaphore {
  /** The semaphore's name. */
  readonly name: string;
  /**
   * Waits for permits and acquires them. {@link Lease.permitIds} are their ids.
   * @param permits 1 to 1 000; default 1.
   * @throws as {@link Semaphore.acquire}
   */
  acquire(permits?: number, options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires permits if enough are available, else returns null.
   * @throws as {@link Lock.tryAcquire}
   */
  tryAcquire(permits?: number, options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Acquires permits, calls `work`, releases the permits, and returns the result of `work`.
   * @throws as {@link Lock.run}
   */
  run<T>(permits: number | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(permits: number | undefined, options: AcquireOptions | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /** Releases permits of any client by their ids, and returns how many of them were held. */
  release(ids: readonly string[]): Promise<number>;
  /**
   * Sets the expiry of permits to this time from now (100 to 86 400 000; `null`: none). Returns
   * false if one of them is not held.
   */
  updateLeaseTime(ids: readonly string[], leaseMs: number | null): Promise<boolean>;
  /** Creates the semaphore with 0 to 2 147 483 647 permits. Returns false if it exists. */
  trySetPermits(permits: number): Promise<boolean>;
  /**
   * Sets the total number of permits, held ones included, and returns the number of available ones.
   */
  setPermits(permits: number): Promise<number>;
  /**
   * Adds or removes permits and returns the new number of available ones.
   * @throws as {@link Semaphore.addPermits}
   */
  addPermits(permits: number): Promise<number>;
  /** Returns the number of available permits. */
  availablePermits(): Promise<number>;
  /** Returns the state of the semaphore, and of the permits with these ids. */
  inspect(ids?: readonly string[]): Promise<PermitsState>;
  /** Releases all permits of all clients, Java's included, and returns whether there were any. */
  forceRelease(): Promise<boolean>;
}

/** The state of a permit-expirable semaphore in Redis. */
export interface PermitsState {
  /** The number of available permits; negative while more are held than there are in total. */
  readonly available: number;
  /** The number of permits that clients of this package and Java's hold. */
  readonly acquired: number;
  /** The total number of permits. */
  readonly total: number;
  /**
   * Milliseconds until the first of the permits in `ids` expires; null if none expires, or if one
   * is not held.
   */
  readonly remainingMs: number | null;
  /** Whether all permits in `ids` are held. */
  readonly areHeld: boolean;
}

/** A latch that opens when its count reaches 0. It has no holder. */
export interface CountDownLatch {
  /** The latch's name. */
  readonly name: string;
  /**
   * Closes an open latch with this count, 1 to 9 000 000 000 000 000. Returns false if the latch is
   * already closed.
   */
  trySetCount(count: number): Promise<boolean>;
  /**
   * Decrements the count by one, exactly once however often the request is resent. Returns the new
   * count.
   */
  countDown(): Promise<number>;
  /** Returns the count; 0 if the latch is open. */
  count(): Promise<number>;
  /**
   * Waits until the latch is open. A latch that was never set is open, as in Redisson.
   * @throws {WaitTimeoutError} it was closed for the whole wait.
   * @throws as {@link Lock.acquire}
   */
  wait(options?: Omit<AcquireOptions, "leaseMs" | "replicas">): Promise<void>;
  /** Opens the latch, with any count. Returns false if it was already open. */
  delete(): Promise<boolean>;
}

/** A key that rejects the writes of stale leases. */
export interface Guard {
  /** The guarded key. */
  readonly key: string;
  /**
   * Sets the key to `value`, for `lifeMs` (1 to 315 360 000 000; default for ever). If the lease is
   * of several locks, `name` is the one that protects the key; default `lease.name`.
   * @throws {StaleTokenError} the guard has seen a newer token.
   * @throws {LeaseLostError} the lease has ended. Nothing was sent.
   * @throws {InvalidOptionError} (`lease`) the lease is of another lock than the one that protects
   * the key. Nothing was sent.
   * @throws {GatewayRefusedError | GatewayUnreachableError | NotExecutedError | InvalidOptionError}
   */
  set(lease: Lease, value: string, options?: { lifeMs?: number; name?: string }): Promise<void>;
  /**
   * Deletes the key; the guard still remembers the token.
   * @throws as {@link Guard.set}
   */
  delete(lease: Lease, options?: { name?: string }): Promise<void>;
  /**
   * Records the lease's token without a write: the guard rejects older tokens from then on. Call it
   * before you read data that a write depends on.
   * @throws as {@link Guard.set}
   */
  claim(lease: Lease, options?: { name?: string }): Promise<void>;
  /** Returns the newest token that the guard remembers; null if it remembers none. */
  newest(): Promise<number | null>;
}

/**
 * A hold on a lock or on permits, for a limited time.
 *
 * Keep a reference to the lease as long as you need the hold: a lease that has been
 * garbage-collected is not renewed, and its hold expires.
 */
export interface Lease {
  /** The name of the lock or semaphore; of several locks, that of the lock with this `token`. */
  readonly name: string;
  /**
   * The fencing token: it rises with every grant of this name. Send it with each write that the
   * lock protects.
   */
  readonly token: number;
  /**
   * Returns the token of the lock `name`, for a lease of several locks; null if it is not among
   * them.
   */
  tokenOf(name: string): number | null;
  /**
   * The ids of the permits of a {@link PermitExpirableSemaphore}; empty for other objects. A client
   * that has an id can release its permit.
   */
  readonly permitIds: readonly string[];
  /**
   * Aborts with a {@link LeaseLostError} when the lease is lost. A release does not abort it.
   */
  readonly signal: AbortSignal;
  /** The number of acquisitions of the same {@link Locks.owner} that share this hold. */
  readonly holdCount: number;
  /**
   * Returns the milliseconds for which the hold is still certain, by this client's clock; 0 if it
   * is lost or released. Sends no request.
   */
  remaining(): number;
  /**
   * Returns whether Redis still has the hold.
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  isHeld(): Promise<boolean>;
  /**
   * Extends the hold to at least `leaseMs` from now (100 to 86 400 000; default its lease). A hold
   * whose requests have a longest lease ({@link ReadWriteOptions.peerWatchdogMs},
   * {@link RedLockOptions.rejoinDelayMs}) is extended by at most that at a time, and renewed until
   * then.
   * @throws {LeaseLostError} the hold is gone.
   * @throws {GatewayRefusedError | GatewayUnreachableError | InvalidOptionError} the hold lasts at
   * least as long as before.
   */
  renew(options?: { leaseMs?: number }): Promise<void>;
  /**
   * Runs your Lua script in Redis if the lease is still held, as one atomic step, and returns its
   * result, parsed from JSON. `keys` and `args` are its `KEYS` (in the lock's hash slot:
   * `{name}:total`) and `ARGV`.
   *
   * The script runs once, however often the request is resent, unless `once` is false. If it fails,
   * its earlier effects remain.
   * @throws {LeaseLostError} the lease is gone; the script did not run.
   * @throws {ScriptFailedError} the script failed, or JSON cannot represent its result.
   * @throws {GatewayRefusedError | GatewayUnreachableError | NotExecutedError | InvalidOptionError}
   */
  eval(script: string, keys?: readonly string[], args?: readonly string[], options?: { once?: boolean }): Promise<unknown>;
  /**
   * Returns the events of the lease, from its present state to its end. A lease whose events are
   * iterated counts as referenced: it is renewed until it ends or the loop is left. The iteration
   * does not keep a program running.
   */
  events(): AsyncGenerator<LeaseEvent, void, void>;
  /**
   * Ends the hold. A second call returns the same result, or repeats the request after an error.
   * @returns `lost` if the hold had ended before.
   * @throws {OutcomeUnknownError} no response came; the hold ends within `freeInMs` (for a writer
   * that also reads, together with the read hold).
   * @throws {GatewayRefusedError}
   */
  release(): Promise<"released" | "lost">;
  /**
   * Releases the hold.
   * @throws {LeaseLostError} the lease did not last until here.
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** An event of a lease. */
export interface LeaseEvent {
  /**
   * `unknown`: a renewal was not confirmed, and the lease has not expired yet. `lost` and
   * `released` are final.
   */
  readonly type: "held" | "renewed" | "unknown" | "lost" | "released";
  /** Why the lease was lost, as {@link LeaseLostError.reason}; only for `lost`. */
  readonly reason?: "expired" | "gone" | "stolen" | undefined;
  /** Milliseconds for which the hold is still certain, by this client's clock. */
  readonly remainingMs: number;
}
