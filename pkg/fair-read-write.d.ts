// The fair read-write lock: part of index.d.ts.

import type { Lease, Lock, LockState } from "./objects.js";
import type { GrantOptions } from "./options.js";

/**
 * A read-write lock whose waiters of both modes stand in one queue and are served in the order of
 * arrival: no later request of an incompatible mode passes a live waiter, except a
 * {@link FairReadWriteLock.steal}. Redisson has no such object, and no other object of the same
 * name excludes this one.
 *
 * A waiter that stays silent for longer than {@link FairReadWriteOptions.lifeMs} lets others pass
 * and keeps its place. If the queue is full, an acquisition rejects with {@link QueueFullError}.
 *
 * {@link Lease.eval} rejects a lease of this lock.
 *
 * Within one {@link Locks.owner} each of the two locks is re-entrant. While it holds one of them,
 * the other one rejects with {@link ReentrancyError}: `reads` for a reader that wants to write,
 * `held` for a writer that wants to read.
 */
export interface FairReadWriteLock {
  /** The lock's name. */
  readonly name: string;
  /**
   * The lock that readers share. {@link Lock.tryAcquire} returns null also if a writer waits.
   *
   * A shared {@link Lease.token} is above every exclusive token that was granted before, below
   * every one that is granted later, and equal for readers between the same two writers. Use it to
   * raise a fence before or while reading ({@link Guard.claim}), not for writes.
   */
  readonly read: Lock;
  /** The lock that one writer holds while no other client reads or writes. */
  readonly write: Lock;
  /**
   * Acquires `write` at once from the present holders: ends all holds, and passes all waiters,
   * which keep their places. The leases that it ends are lost with the reason `stolen` at their
   * next renewal, which comes after a third of the lease; the release of a lease that is not
   * renewed returns `lost`. Of two steals the later one wins.
   *
   * Redis does not grant it while its memory is full; {@link FairReadWriteLock.forceRelease} works
   * then.
   * @throws {ReentrancyError} this owner holds `read`.
   * @throws {GatewayRefusedError | GatewayUnreachableError | GatewayTooSlowError |
   * OutcomeUnknownError | InvalidOptionError}
   */
  steal(options?: GrantOptions & { signal?: AbortSignal }): Promise<Lease>;
  /**
   * Returns the state of the lock, read from the primary; the method of the same name of `read` and
   * of `write` returns the same.
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  inspect(): Promise<FairReadWriteState>;
  /**
   * Returns all live holds and waits of the lock's namespace: of all fair read-write locks whose
   * name has the same `{tag}`, or of this lock alone if its name has none. Each request returns up
   * to 256 entries of one moment; a longer list is the union of several moments.
   *
   * With a scoped token it needs the right to the whole namespace.
   * @throws {GatewayRefusedError | GatewayUnreachableError}
   */
  query(): Promise<FairReadWriteRequests>;
  /**
   * Ends the holds of all clients, in both modes; waiters keep their places. The method of the same
   * name of `read` and of `write` does the same.
   * @returns whether the lock was held.
   * @throws {NotExecutedError | GatewayRefusedError | GatewayUnreachableError}
   */
  forceRelease(): Promise<boolean>;
}

/**
 * The state of a fair read-write lock in Redis. `holdCount` is the number of holds, and
 * `remainingMs` the time until the last one of them expires.
 */
export interface FairReadWriteState extends LockState {
  /** The mode of the present holds; null if there are none. */
  readonly mode: "shared" | "exclusive" | null;
  /** The number of live waiters of both modes. */
  readonly waiters: number;
  /** The number of exclusive waiters, which includes those that died a short time ago. */
  readonly exclusiveWaiters: number;
}

/** The holds and waits of a namespace. */
export interface FairReadWriteRequests {
  /** The holds, by name; those of one name begin with the one whose lease ends first. */
  readonly held: readonly FairReadWriteRequest[];
  /** The waits, by name; those of one name are in the order of the queue. */
  readonly pending: readonly FairReadWriteRequest[];
}

/** A hold or a wait. */
export interface FairReadWriteRequest {
  /** The lock's name. A name that consists of a `{tag}` alone is returned without its braces. */
  readonly name: string;
  readonly mode: "shared" | "exclusive";
  /** {@link FairReadWriteOptions.clientId} of the client; empty if it set none. */
  readonly clientId: string;
  /**
   * Milliseconds until the lease of a hold ends; for a wait, until the waiter counts as dead unless
   * it polls before.
   */
  readonly remainingMs: number;
}

/** The options of a fair read-write lock. */
export interface FairReadWriteOptions {
  /**
   * A text that identifies this client in {@link FairReadWriteLock.query}: up to 64 bytes of UTF-8
   * without control characters. Each client that may query the namespace can read it. Default:
   * empty.
   */
  clientId?: string;
  /**
   * How long after a poll a waiter counts as alive, 1 000 to 60 000; default 10 000. The waiter
   * polls three times in it. A dead waiter delays those behind it by this time; a shorter time
   * costs more requests of each waiter, a longer one fewer.
   */
  lifeMs?: number;
  /**
   * The largest number of readers at a time, 1 to 20 000; default 1 000. All clients of the lock
   * should use the same.
   */
  maxHolders?: number;
  /**
   * The largest number of waiters, 1 to 20 000; default 10 000. Further ones reject with
   * {@link QueueFullError}. All clients of the lock should use the same.
   */
  maxWaiters?: number;
}
