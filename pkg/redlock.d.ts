/**
 * The interface of the package `redlock` 5 over edgelatch clients. The classes, methods, settings
 * and errors are those of `redlock`; `docs/migrating-from-redlock.md` lists the differences.
 */

import type { Locks } from "./index.js";

/** The votes of the clients in one attempt of an operation. */
export type ExecutionStats = {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<Locks>;
  /**
   * The clients that voted against, each with the reason: a {@link ResourceLockedError}, or an
   * error of edgelatch.
   */
  readonly votesAgainst: Map<Locks, Error>;
};

/** The result of a release. */
export type ExecutionResult = {
  /** Each resolves once every client has voted. */
  attempts: ReadonlyArray<Promise<ExecutionStats>>;
};

/** The settings of a {@link Redlock}, or of one call. */
export interface Settings {
  /** The part of the duration that {@link Lock.expiration} is earlier, plus 2 ms. Default 0.01. */
  readonly driftFactor: number;
  /** The number of attempts after the first; -1 is unlimited. Default 10. */
  readonly retryCount: number;
  /** The pause between two attempts in milliseconds. Default 200. */
  readonly retryDelay: number;
  /** The largest random change of the pause in milliseconds. Default 100. */
  readonly retryJitter: number;
  /** How long before its expiration {@link Redlock.using} extends a lock, in ms. Default 500. */
  readonly automaticExtensionThreshold: number;
}

/** A resource is held by another lock, or no longer by this one. */
export class ResourceLockedError extends Error {
  readonly message: string;
  constructor(message: string);
}

/** No quorum of the clients carried out an operation. */
export class ExecutionError extends Error {
  readonly message: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>);
}

/** A hold on resources. Only the process that acquired it can extend and release it. */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** A random text. Unlike in `redlock`, Redis does not store it. */
  readonly value: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  /**
   * The time until which the hold is certain, in milliseconds since 1970 by this client's clock; 0
   * after a release or an extension.
   */
  expiration: number;
  constructor(redlock: Redlock, resources: string[], value: string, attempts: ReadonlyArray<Promise<ExecutionStats>>, expiration: number);
  /**
   * The fencing token of the only resource, which rises with every grant; `redlock` has none. Null
   * with several resources or several clients.
   */
  get token(): number | null;
  /** Returns the fencing token of a resource; null with several clients. */
  tokenOf(resource: string): number | null;
  /** @throws {ExecutionError} as {@link Redlock.release} */
  release(): Promise<ExecutionResult>;
  /** @throws {ExecutionError} as {@link Redlock.extend} */
  extend(duration: number): Promise<Lock>;
}

/** The signal of {@link Redlock.using}. Its `reason` is the error, too. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** Acquires locks from one client, or from a quorum of clients of independent Redis servers. */
export default class Redlock {
  readonly clients: Set<Locks>;
  readonly settings: Settings;

  /** @throws {Error} there is no client, or one is not an edgelatch client. */
  constructor(clients: Iterable<Locks>, settings?: Partial<Settings>);

  /** Resolves at once: edgelatch clients have no connections to close. */
  quit(): Promise<void>;

  /**
   * Acquires the resources, all or none.
   *
   * @param resources names, each 1 to 512 bytes of UTF-8 without control characters.
   * @param duration the length of the hold in milliseconds, a whole number from 100 to 86 400 000.
   * @throws {ExecutionError} no quorum granted them in any attempt. Nothing is held.
   */
  acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock>;

  /**
   * Ends a hold.
   * @throws {ExecutionError} the hold had ended before, or no quorum confirmed the release.
   */
  release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult>;

  /**
   * Extends a hold to at least `duration` from now, and returns the lock that replaces `existing`.
   * @throws {ExecutionError} the hold has ended, or no quorum confirmed the extension.
   */
  extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock>;

  /**
   * Acquires the resources, calls the routine, and releases them. Extends the lock while the
   * routine runs. The signal aborts when the hold ends before the routine.
   * @throws {ExecutionError} as {@link acquire} and {@link release}; an error of the routine takes
   * precedence.
   */
  using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  using<T>(resources: string[], duration: number, routine: (signal: RedlockAbortSignal) => Promise<T>): Promise<T>;

  /** Calls the listener with the error of each vote against an operation. */
  on(event: "error", listener: (error: Error) => void): this;
  once(event: "error", listener: (error: Error) => void): this;
  off(event: "error", listener: (error: Error) => void): this;
  addListener(event: "error", listener: (error: Error) => void): this;
  removeListener(event: "error", listener: (error: Error) => void): this;
  removeAllListeners(event?: "error"): this;
  listenerCount(event: "error"): number;
  emit(event: "error", error: Error): boolean;
}
