/// <reference lib="esnext.disposable" />
/**
 * Redisson's distributed locks over HTTP.
 *
 * Every duration is a whole number of milliseconds. An invalid argument throws or rejects with
 * {@link InvalidOptionError} before anything is sent. Errors name the lock and the gateway's host,
 * and contain neither the gateway's token nor an owner id nor a script.
 */

import type { FairReadWriteLock, FairReadWriteOptions } from "./fair-read-write.js";
import type { Log } from "./log.js";
import type { CountDownLatch, Guard, Lock, PermitExpirableSemaphore, ReadWriteLock, Semaphore } from "./objects.js";
import type { FairOptions, GrantOptions, GroupOptions, GuardOptions, PermitOptions, ReadWriteOptions, RedLockOptions, SpinOptions } from "./options.js";

export * from "./errors.js";
export type {
  FairReadWriteLock,
  FairReadWriteOptions,
  FairReadWriteRequest,
  FairReadWriteRequests,
  FairReadWriteState,
} from "./fair-read-write.js";
export type {
  CountDownLatch,
  Guard,
  Lease,
  LeaseEvent,
  Lock,
  LockState,
  PermitExpirableSemaphore,
  PermitsState,
  ReadWriteLock,
  Semaphore,
  SemaphoreState,
} from "./objects.js";
export type {
  AcquireOptions,
  FairOptions,
  GrantOptions,
  GroupOptions,
  GuardOptions,
  LeaseOptions,
  PermitOptions,
  ReadWriteOptions,
  RedLockOptions,
  SpinOptions,
} from "./options.js";

/** The options of {@link connect}. */
export type ConnectOptions = UpstashOptions | WebdisOptions;

/**
 * The options for a gateway that speaks Upstash's REST protocol: Upstash itself,
 * `edgelatch-gateway`, SRH and compatible servers.
 */
export interface UpstashOptions extends GatewayOptions {
  /** The gateway's protocol. Default `upstash`. */
  dialect?: "upstash";
  /**
   * The gateway's bearer token; white space around it is ignored. For `undefined`, as of a variable
   * that is not set, {@link connect} throws an error that suggests to check the variable.
   */
  token: string | undefined;
}

/**
 * The options for a Webdis. It cannot wait for replicas, and its arguments cannot contain zero
 * bytes: the client rejects {@link GrantOptions.replicas} and such an argument before it sends
 * anything.
 */
export interface WebdisOptions extends GatewayOptions {
  /** The gateway's protocol. */
  dialect: "webdis";
  /**
   * The value of `http_basic_auth` in its configuration, `user:password`; white space around it is
   * ignored. Default: none, for a Webdis without authentication.
   */
  token?: string;
}

/** The options for every gateway. */
export interface GatewayOptions {
  /**
   * The gateway's address: `https://…`, or `http://` on loopback; without user, query and fragment.
   * White space around it is ignored.
   */
  url: string | undefined;
  /**
   * Allows `http://` beyond loopback. For private networks only, since the token travels
   * unencrypted. Default false.
   */
  allowHttp?: boolean;
  /**
   * Sends the requests: each is a POST to the address. Up to 64 calls of one turn of the event loop
   * share one request to `pipeline` below the address if the gateway has that path. Default:
   * `globalThis.fetch`, read at each request.
   */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
  /**
   * The longest time for one attempt of a request, 50 to 60 000; default 5 000, and never more than
   * a third of the lease. A shorter time detects a hanging gateway sooner; a longer one tolerates a
   * slow gateway.
   */
  requestTimeoutMs?: number;
  /**
   * A line for each step of a lock's life: `log` or `logTo(…)` of `edgelatch/log`. Default: none.
   */
  log?: Log;
  /**
   * Whether scripts start with Upstash's key-locking line. Default `auto`: yes for hosts below
   * `upstash.io`, until a response rejects the line.
   */
  keyLocking?: "auto" | "on" | "off";
  /**
   * Omits the names of locks and keys from the messages and properties of errors, for names that
   * are personal data. Default false.
   */
  redactNames?: boolean;
  /**
   * How waiters detect a release. Default `auto`: by notifications over a stream if the gateway
   * supports streams, which the client detects; otherwise, and while no stream is open, waiters
   * poll ({@link Locks.events} reports which). `off`: waiters always poll. A stream occupies a
   * connection while a call waits. All pages of an origin together open at most two streams for
   * each gateway, coordinated by `navigator.locks`; a waiter without a stream polls.
   */
  wakeups?: "auto" | "off";
  /**
   * The command that announces a release: `PUBLISH` (`plain`), `SPUBLISH` (`sharded`), or both.
   * Default `plain`. Set `sharded` or `both` if Java programs use the locks on a Redis Cluster.
   */
  publish?: "plain" | "sharded" | "both";
}

/** The options of {@link connect.fromEnv}. */
export interface FromEnvOptions extends Partial<Omit<UpstashOptions, "url" | "token" | "dialect">> {
  /**
   * The prefix of each variable's name: `{ prefix: "LOCKS_" }` reads `LOCKS_KV_REST_API_URL`.
   * Default: none.
   */
  prefix?: string;
}

/**
 * Returns a client of a gateway. It sends nothing and starts no timer, so a client that is created
 * at module level can serve every request of a Worker.
 *
 * @throws {InvalidOptionError} an option is missing or invalid.
 * @throws {StartError} the WebAssembly module cannot start here.
 * @throws {BrokenError} the package has failed before.
 */
export function connect(options: ConnectOptions): Locks;
export namespace connect {
  /**
   * Returns a client of the gateway of these environment variables: `UPSTASH_REDIS_REST_URL` and
   * `UPSTASH_REDIS_REST_TOKEN`, else `KV_REST_API_URL` and `KV_REST_API_TOKEN`.
   *
   * @param env the variables, such as a Worker's bindings; default `process.env`.
   * @throws {InvalidOptionError} names the variable that is missing or invalid.
   * @throws {StartError | BrokenError} as {@link connect}.
   */
  function fromEnv(env?: object, options?: FromEnvOptions): Locks;
}

/**
 * A client of one gateway, or an {@link owner} of it. Its methods send nothing, and throw an
 * {@link InvalidOptionError} at once for an invalid name or option.
 *
 * A name has 1 to 512 bytes of UTF-8 without control characters. Braces are valid only as a
 * `{tag}`.
 */
export interface Locks {
  /**
   * Returns the lock of this name, as Redisson's `getLock(name)`. Acquisitions of one {@link owner}
   * are re-entrant.
   * @throws {InvalidOptionError}
   */
  lock(name: string): Lock;
  /**
   * Returns a lock that is not re-entrant, as Redisson's `getNonReentrantLock(name)`: a second
   * acquisition by its owner rejects with {@link ReentrancyError}.
   * @throws {InvalidOptionError}
   */
  nonReentrantLock(name: string): Lock;
  /**
   * Returns a lock whose waiters only poll, with their own back-off, as Redisson's
   * `getSpinLock(name, backOff)`.
   * @throws {InvalidOptionError}
   */
  spinLock(name: string, options?: SpinOptions): Lock;
  /**
   * Returns a lock that serves its waiters in the order of arrival, as Redisson's
   * `getFairLock(name)`.
   * @throws {InvalidOptionError}
   */
  fairLock(name: string, options?: FairOptions): Lock;
  /**
   * Returns a lock that serves its waiters in the order of arrival and is not re-entrant, as
   * Redisson's `getNonReentrantFairLock(name)`.
   * @throws {InvalidOptionError}
   */
  nonReentrantFairLock(name: string, options?: FairOptions): Lock;
  /**
   * Returns a lock whose last fencing token is kept for ever, as Redisson's `getFencedLock(name)`.
   * @throws {InvalidOptionError}
   */
  fencedLock(name: string): Lock;
  /**
   * Returns a pair of locks for many readers or one writer, as Redisson's `getReadWriteLock(name)`.
   * @throws {InvalidOptionError}
   */
  readWriteLock(name: string, options?: ReadWriteOptions): ReadWriteLock;
  /**
   * Returns a pair of locks for many readers or one writer, which serves waiters of both in the
   * order of arrival. Redisson has no such lock.
   * @throws {InvalidOptionError}
   */
  fairReadWriteLock(name: string, options?: FairReadWriteOptions): FairReadWriteLock;
  /**
   * Returns a lock on values of a group, all or none, as Redisson's `getMultiLock(group, values)`
   * of a client with `StringCodec`.
   *
   * @param values 1 to 1000 texts, or bytes as another codec encodes them.
   * @throws {InvalidOptionError}
   */
  groupLock(group: string, values: readonly (string | Uint8Array)[], options?: GroupOptions): Lock;
  /**
   * Returns a lock that acquires several locks, all or none, as Redisson's `getMultiLock(locks)`.
   * {@link Lease.tokenOf} returns the token of each.
   *
   * @param locks 1 to 100, of any kind, of this client or other clients.
   * @throws {InvalidOptionError}
   */
  multiLock(locks: readonly Lock[]): Lock;
  /**
   * Returns a lock that is held if a majority of independent Redis servers grants it, as Redisson's
   * `getRedLock(locks)`. After the majority the acquisition waits for the other servers as long
   * again, at least 10 ms; those that have granted by then count until the release.
   *
   * @param locks 3, 5, 7 or 9 plain or fenced locks, each of a different client.
   * @throws {InvalidOptionError}
   */
  redLock(locks: readonly Lock[], options?: RedLockOptions): Lock;
  /**
   * Returns a semaphore, as Redisson's `getSemaphore(name)`.
   * @throws {InvalidOptionError}
   */
  semaphore(name: string): Semaphore;
  /**
   * Returns a semaphore whose permits have ids and leases of their own, as Redisson's
   * `getPermitExpirableSemaphore(name)`.
   * @throws {InvalidOptionError}
   */
  permitExpirableSemaphore(name: string, options?: PermitOptions): PermitExpirableSemaphore;
  /**
   * Returns a latch that opens when its count reaches 0, as Redisson's `getCountDownLatch(name)`.
   * @throws {InvalidOptionError}
   */
  countDownLatch(name: string): CountDownLatch;
  /**
   * Returns a guard, which writes a key, remembers the newest fencing token of these writes, and
   * rejects writes with an older one. One lock protects the key: {@link GuardOptions.lock}, or else
   * the lock of the first write. A write with a lease of another lock rejects with
   * {@link InvalidOptionError}.
   *
   * @param key 1 to 512 bytes of UTF-8; if it has braces, the first are a `{tag}`.
   * @throws {InvalidOptionError}
   */
  guard(key: string, options?: GuardOptions): Guard;
  /**
   * Returns a client whose acquisitions are re-entrant: those of one lock share one hold, counted
   * in this client and not in Redis, and a writer may also read. Create an owner for each task (in
   * a Worker, for each request), and do not share it between tasks.
   */
  owner(): Locks;
  /**
   * Returns the events of this gateway and of the Redis behind it. The first `stream` or `polling`
   * event comes after a call has waited; each response can cause a `clock-set-back` event. The
   * iteration never ends by itself: leave the loop. It sends no request and does not keep a program
   * running.
   */
  events(): AsyncGenerator<ClientEvent, void, void>;
}

/** An event of a client. */
export type ClientEvent =
  | {
      /**
       * How waiters detect releases from now on. `stream`: by notifications, without polling.
       * `polling`: by requests at intervals, because the gateway has no streams, none is open now,
       * this runtime opens none, or `wakeups` is `off`.
       */
      readonly type: "stream" | "polling";
    }
  | {
      /**
       * Redis' clock went backwards: it was set back, or another Redis responds now. Existing holds
       * of all clients last longer by `byMs` unless they are released; tokens still rise.
       */
      readonly type: "clock-set-back";
      /**
       * The lower bound of the step in milliseconds. Steps of up to 1 000 are not reported: the
       * clocks of a failed primary and its replacement may differ by that much.
       */
      readonly byMs: number;
    };
