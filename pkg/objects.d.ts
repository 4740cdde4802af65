/// <reference lib="esnext.disposable" />
// What is acquired, and what is held: part of index.d.ts.

/** How long a hold lasts. */
export interface LeaseOptions {
  /**
   * The lease, 100 to 86 400 000. When given, the hold ends after it unless you call {@link
   * Lease.renew}. When not, it is 30 000 and is renewed every third of it until the release; but
   * permits are then held until they are released, also when their holder dies. `"renewed"` is for
   * them: renewed as locks are.
   */
  leaseMs?: number | "renewed";
}

/** How a grant is to be kept safe beside its lease. */
export interface GrantOptions extends LeaseOptions {
  /**
   * Takes the grant only when this number of Redis' replicas have it, 1 to 8, so that a failover to
   * one of them keeps it. Rejects with {@link GatewayRefusedError} otherwise (`not-replicated`, and
   * nothing is held), also where the gateway has no `/pipeline` (`unsupported`). Default: none is
   * waited for.
   */
  replicas?: number;
}

/** How long to wait, and with what means. */
export interface AcquireOptions extends GrantOptions {
  /** Longest wait, 1 to 86 400 000; default 30 000. `"until-aborted"` needs a `signal`. */
  waitMs?: number | "until-aborted";
  /**
   * Ends the wait and undoes a grant that is still on its way. The promise rejects with the
   * signal's reason, also when the undoing could not be confirmed; then the lease runs out by
   * itself.
   */
  signal?: AbortSignal;
  /**
   * Most requests the wait may spend, 3 to 10 000; default 40 for a timed wait, none for
   * `"until-aborted"`. A smaller one stretches the pauses between tries. (A Worker on the free plan
   * has 50 for each request it serves.) One more is sent for each script that Redis does not know
   * yet.
   */
  maxRequests?: number;
}

/** A distributed lock of any kind. */
export interface Lock {
  readonly name: string;
  /**
   * Takes the lock if it is free, in one request. (With a gateway that does not respond it gives up
   * after three attempts, and three more to undo them.)
   *
   * @returns the lease, or null when another client holds the lock.
   * @throws {ReentrancyError} this owner may not take it now.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError | OutcomeUnknownError | InvalidOptionError}
   */
  tryAcquire(options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Waits for the lock.
   *
   * @throws {WaitTimeoutError} another client held it for the whole wait.
   * @throws {ReentrancyError} this owner may not take it now.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError | OutcomeUnknownError | InvalidOptionError}
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires, calls `work`, releases, and returns what `work` returned.
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
   * @throws {NotExecutedError | GatewayRefusedError | GatewayUnreachableError}
   */
  forceRelease(): Promise<boolean>;
  /** What Redis says of the lock now, read from the primary. */
  inspect(): Promise<LockState>;
}

/** Two locks of one name. */
export interface ReadWriteLock {
  /** Shared by all who read. */
  readonly read: Lock;
  /** Held by one who writes, while nobody else reads or writes. */
  readonly write: Lock;
}

/** What Redis says of a lock. */
export interface LockState {
  readonly locked: boolean;
  /**
   * The hold count in Redis: 1 for ours, more for a Java thread that re-entered, 0 when free. For a
   * side of a read-write lock it is the sum over all holders; from 1,000 holders on each counts
   * once.
   */
  readonly holdCount: number;
  /** Until the hold runs out; null when the lock is free or its hold has no end. */
  readonly remainingMs: number | null;
  /** The newest fencing token of this name, 0 when there is none. */
  readonly lastToken: number;
}

/** A number of permits that many share. It is there once its permits were set or added. */
export interface Semaphore {
  readonly name: string;
  /** Waits for `permits`, 1 to 2 147 483 647, default 1. @throws as {@link Lock.acquire} */
  acquire(permits?: number, options?: AcquireOptions): Promise<Lease>;
  /** Takes them if they are available, else returns null. @throws as {@link Lock.tryAcquire} */
  tryAcquire(permits?: number, options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Acquires, calls `work`, gives back, and returns what `work` returned. @throws as {@link
   * Lock.run}
   */
  run<T>(permits: number | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(permits: number | undefined, options: AcquireOptions | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /**
   * Adds `permits`, or takes them away when negative; returns how many there are then. Makes the
   * semaphore.
   */
  addPermits(permits: number): Promise<number>;
  /**
   * Makes `permits` available that no lease here holds, default 1. (A {@link Lease} gives its own
   * back by itself.)
   */
  release(permits?: number): Promise<void>;
  /** The same if the semaphore is there; false when it is not. */
  releaseIfExists(permits?: number): Promise<boolean>;
  /** Takes all permits that are available, for good; returns how many. */
  drainPermits(): Promise<number>;
  /**
   * Makes the semaphore, for `lifeMs` (1 to 315 360 000 000) or for ever; false when it is there
   * already.
   */
  trySetPermits(permits: number, options?: { lifeMs?: number }): Promise<boolean>;
  /** How many permits are available now. */
  availablePermits(): Promise<number>;
  /** What Redis says of it now. */
  inspect(): Promise<SemaphoreState>;
  /**
   * Gives back whatever leases of ours hold, whoever has them; returns whether there was something.
   */
  forceRelease(): Promise<boolean>;
}

/** What Redis says of a semaphore. */
export interface SemaphoreState {
  /** Permits that are available; negative after more were taken away than there were. */
  readonly available: number;
  /** Leases of ours on it. */
  readonly leases: number;
  /** Permits that these hold. What Java holds is known to nobody. */
  readonly held: number;
}

/** A number of permits, each with an id, and with an end if it is given one. */
export interface PermitExpirableSemaphore {
  readonly name: string;
  /**
   * Waits for `permits`, 1 to 1 000, default 1. Their ids are {@link Lease.permitIds}. @throws as
   * {@link Lock.acquire}
   */
  acquire(permits?: number, options?: AcquireOptions): Promise<Lease>;
  /** Takes them if they are available, else returns null. @throws as {@link Lock.tryAcquire} */
  tryAcquire(permits?: number, options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Acquires, calls `work`, gives back, and returns what `work` returned. @throws as {@link
   * Lock.run}
   */
  run<T>(permits: number | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  run<T>(permits: number | undefined, options: AcquireOptions | undefined, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /** Gives permits back by their ids, whoever took them; returns how many of them were held. */
  release(ids: readonly string[]): Promise<number>;
  /**
   * Lets permits end after this time from now (100 to 86 400 000), `null`: never. False when one of
   * them is not held.
   */
  updateLeaseTime(ids: readonly string[], leaseMs: number | null): Promise<boolean>;
  /** Makes the semaphore; false when it is there already. */
  trySetPermits(permits: number): Promise<boolean>;
  /** Sets the number of permits in all, held ones included; returns how many are available then. */
  setPermits(permits: number): Promise<number>;
  /** Adds `permits`, or takes them away when negative; returns how many there are then. */
  addPermits(permits: number): Promise<number>;
  /** How many permits are available now. */
  availablePermits(): Promise<number>;
  /** What Redis says of it now, and of these permits. */
  inspect(ids?: readonly string[]): Promise<PermitsState>;
  /** Gives all permits back, whoever holds them, Java's too; returns whether there were any. */
  forceRelease(): Promise<boolean>;
}

/** What Redis says of a permit-expirable semaphore. */
export interface PermitsState {
  /** Permits that are available; negative while more are held than there are in all. */
  readonly available: number;
  /** Permits that are held, by ours and by Java. */
  readonly acquired: number;
  /** Permits in all. */
  readonly total: number;
  /**
   * Of the ids that were asked for: until the first of them ends; null for no end, or when one is
   * not held.
   */
  readonly remainingMs: number | null;
  /** Whether all ids that were asked for are held. */
  readonly areHeld: boolean;
}

/** A gate that opens when it was counted down to nothing. Nobody holds it. */
export interface CountDownLatch {
  readonly name: string;
  /**
   * Closes an open latch with this count, 1 to 9 000 000 000 000 000; false when it is closed
   * already.
   */
  trySetCount(count: number): Promise<boolean>;
  /** Counts down by one, once, whatever is resent; returns what is left. */
  countDown(): Promise<number>;
  /** What is left to count; 0 when it is open. */
  count(): Promise<number>;
  /**
   * Waits until it is open; a latch that was never set is open, as in Redisson. @throws
   * {WaitTimeoutError} it was closed for the whole wait. @throws as {@link Lock.acquire}
   */
  wait(options?: Omit<AcquireOptions, "leaseMs" | "replicas">): Promise<void>;
  /** Opens it, whatever is left to count; false when it was open. */
  delete(): Promise<boolean>;
}

/** Writes that a stale lease cannot make. */
export interface Guard {
  readonly key: string;
  /**
   * `SET`, for `lifeMs` (1 to 315 360 000 000) or without an end. `name` says which of several
   * locks that were taken together protects the key; the first unless said.
   *
   * @throws {StaleTokenError} a newer token has been seen. Nothing was written.
   * @throws {LeaseLostError} the lease has ended. Nothing was sent.
   * @throws {InvalidOptionError} (`lease`) the lease is of another lock than the one that protects the key. Nothing was sent.
   * @throws {GatewayRefusedError | GatewayUnreachableError | NotExecutedError | InvalidOptionError}
   */
  set(lease: Lease, value: string, options?: { lifeMs?: number; name?: string }): Promise<void>;
  /** `DEL`. @throws as {@link Guard.set} */
  delete(lease: Lease, options?: { name?: string }): Promise<void>;
  /**
   * Writes nothing, but from now on no older token can. To be done before a read that a write
   * depends on. @throws as {@link Guard.set}
   */
  claim(lease: Lease, options?: { name?: string }): Promise<void>;
  /** The newest token that was seen; null when none is remembered. */
  newest(): Promise<number | null>;
}

/**
 * A hold on a lock or on permits, for a time.
 *
 * Keep it for as long as you want the hold: one that nothing refers to any more is not renewed, and
 * its hold runs out.
 */
export interface Lease {
  readonly name: string;
  /**
   * The fencing token: rises with every grant of this name. Send it with each write that the lock
   * protects.
   */
  readonly token: number;
  /**
   * The token of one of several locks that were taken together; null when no lock of this name is
   * among them.
   */
  tokenOf(name: string): number | null;
  /**
   * The ids of its permits, of a {@link PermitExpirableSemaphore}; none for others. An id is the
   * right to give the permit back.
   */
  readonly permitIds: readonly string[];
  /**
   * Aborted with a {@link LeaseLostError} when the lease can no longer be trusted. Not aborted by a
   * release.
   */
  readonly signal: AbortSignal;
  /** How many acquisitions of the same {@link Locks.owner} share this hold. */
  readonly holdCount: number;
  /**
   * Milliseconds for which the hold can still be trusted; 0 when it is lost or released. Asks
   * nobody.
   */
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
  renew(options?: { leaseMs?: number }): Promise<void>;
  /**
   * Runs a Lua script of yours in Redis, in one atomic step with the question whether the lease is
   * still held; returns its result, read from JSON. `KEYS` (in the lock's slot: `{name}:total`) and
   * `ARGV` are its own.
   *
   * It runs once, whatever is resent, unless `once` is false. What it had done before it failed
   * stays done.
   *
   * @throws {LeaseLostError} the lease is gone; it did not run.
   * @throws {ScriptFailedError} it failed, or its result is none that JSON can tell.
   * @throws {GatewayRefusedError | GatewayUnreachableError | NotExecutedError | InvalidOptionError}
   */
  eval(script: string, keys?: readonly string[], args?: readonly string[], options?: { once?: boolean }): Promise<unknown>;
  /**
   * What becomes of the lease, from its present state to its end. A lease that is listened to
   * counts as in use: it is renewed until it ends or the loop is left. Listening does not keep a
   * program running.
   */
  events(): AsyncGenerator<LeaseEvent, void, void>;
  /**
   * Ends the hold. Calling it again returns the same, or asks Redis again after an error.
   *
   * @returns `lost` when the hold had ended before.
   * @throws {OutcomeUnknownError} no response came; the hold has ended after `freeInMs` at the latest (that of a writer who reads as
   *   well, with its read).
   * @throws {GatewayRefusedError}
   */
  release(): Promise<"released" | "lost">;
  /** Releases; rejects with {@link LeaseLostError} when the lease did not last until here. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What has become of a lease. */
export interface LeaseEvent {
  /**
   * `unknown`: a renewal has no response yet, the lease runs on. `lost` and `released` are the
   * last.
   */
  readonly type: "held" | "renewed" | "unknown" | "lost" | "released";
  /** Why it was lost, see {@link LeaseLostError}. */
  readonly reason?: "expired" | "gone" | undefined;
  /** Milliseconds for which the hold can still be trusted. */
  readonly remainingMs: number;
}
