/**
 * The interface of the package `@upstash/lock` 0.2 over an edgelatch client. The class, methods and
 * options are those of `@upstash/lock`; `docs/migrating-from-upstash-lock.md` has the differences.
 */

import type { Locks } from "./index.js";

/** The retries of an acquisition. */
export type RetryConfig = {
  /** The number of attempts, the first included. Default 3. */
  attempts: number;
  /** The pause between two attempts in milliseconds. Default 100. */
  delay: number;
};

/** The options of {@link Lock.acquire}. */
export type LockAcquireConfig = {
  /** The length of the hold in milliseconds, 100 to 86 400 000; default that of the lock. */
  lease?: number;
  retry?: RetryConfig;
  /** The value of `UUID` in the lock's configuration. Unlike in `@upstash/lock`, it is no owner. */
  uuid?: string;
};

/** The configuration of a {@link Lock}. */
export type LockConfig = {
  redis: Locks;
  id: string;
  lease: number;
  /** Set while the lock is held, and until its next acquisition. */
  UUID: string | null;
  retry: RetryConfig;
};

/** The options of the constructor of {@link Lock}. */
export type LockCreateConfig = {
  /** The name of the lock: 1 to 512 bytes of UTF-8 without control characters. */
  id: string;
  /** An edgelatch client. */
  redis: Locks;
  /** The length of the hold in milliseconds, 100 to 86 400 000; default 10 000. */
  lease?: number;
  retry?: RetryConfig;
};

export type LockStatus = "ACQUIRED" | "FREE";

/** A lock. Each task needs an instance of its own. */
export class Lock {
  private readonly config;
  /** @throws {Error} an option is missing, of the wrong type or out of range. */
  constructor(config: LockCreateConfig);
  /**
   * Acquires the lock; returns false if another client holds it in every attempt. A failed
   * acquisition forgets an earlier hold of this instance, which ends with its lease.
   * @throws {EdgelatchError} the gateway could not be reached or refused the request. Nothing is
   * held, unless the error is an `OutcomeUnknownError`.
   */
  acquire(acquireConfig?: LockAcquireConfig): Promise<boolean>;
  /**
   * Releases the lock; returns false if this instance does not hold it.
   * @throws {EdgelatchError} the release was not confirmed. It may be repeated.
   */
  release(): Promise<boolean>;
  /**
   * Extends the hold by `amt` milliseconds, a whole number from 1 on. Returns false if this
   * instance does not hold the lock.
   * @throws {EdgelatchError} the extension was not confirmed: the hold lasts at least as long as
   * before.
   * @throws {RangeError} the hold would be longer than a day.
   */
  extend(amt: number): Promise<boolean>;
  get id(): string;
  /** Returns whether this instance holds the lock. */
  getStatus(): Promise<LockStatus>;
  /** The fencing token of the hold, which rises with every grant; null if there is none. */
  get token(): number | null;
  /** Aborts when the hold is lost; null if there is none. `@upstash/lock` has no such signal. */
  get signal(): AbortSignal | null;
}
