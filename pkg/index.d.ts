/// <reference lib="esnext.disposable" />
/**
 * Redisson's distributed locks over HTTP.
 *
 * Every duration is a whole number of milliseconds. Bad input rejects with {@link
 * InvalidOptionError} before anything is sent. Errors name the lock and the gateway's host; none
 * holds the gateway's token, an owner id or a script.
 */

import type { CountDownLatch, Guard, Lock, PermitExpirableSemaphore, ReadWriteLock, Semaphore } from "./objects.js";

export * from "./errors.js";
export type {
  AcquireOptions,
  CountDownLatch,
  GrantOptions,
  Guard,
  Lease,
  LeaseEvent,
  LeaseOptions,
  Lock,
  LockState,
  PermitExpirableSemaphore,
  PermitsState,
  ReadWriteLock,
  Semaphore,
  SemaphoreState,
} from "./objects.js";

/** What {@link connect} needs to know. */
export type ConnectOptions = UpstashOptions | WebdisOptions;

/**
 * A gateway that speaks Upstash's REST protocol: Upstash itself, `edgelatch-gateway`, SRH and
 * others.
 */
export interface UpstashOptions extends GatewayOptions {
  dialect?: "upstash";
  /**
   * The gateway's bearer token. White space around it is cut off. `undefined`, as an environment
   * variable that is not set, throws an {@link InvalidOptionError} that says so.
   */
  token: string | undefined;
}

/**
 * A Webdis. It cannot wait for replicas, and knows no zero byte in arguments of your own: both are
 * refused before anything is sent.
 */
export interface WebdisOptions extends GatewayOptions {
  dialect: "webdis";
  /**
   * What its `http_basic_auth` says, `user:password`; left out where it asks for nothing. White
   * space around it is cut off.
   */
  token?: string;
}

/** What all gateways have in common. */
export interface GatewayOptions {
  /**
   * The gateway's address: `https://…`, or `http://` on loopback. No user, query or fragment in it.
   * White space is cut off.
   */
  url: string | undefined;
  /**
   * Allows `http://` beyond loopback: for private networks only, since the token travels in the
   * clear. Default false.
   */
  allowHttp?: boolean;
  /**
   * What carries the requests: POST to the address, and to `pipeline` below it for calls of one
   * turn of the event loop (up to 64), which are one request where the gateway has that. Default:
   * `globalThis.fetch`, looked up at each request.
   */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
  /**
   * Longest time one request may take, 50 to 60 000; default 5 000. A shorter one finds a hanging
   * gateway sooner.
   */
  requestTimeoutMs?: number;
  /**
   * Whether scripts start with Upstash's key-locking line. Default `auto`: on for hosts below
   * `upstash.io`, and off from the first answer that refuses it.
   */
  keyLocking?: "auto" | "on" | "off";
  /**
   * Leaves the names of locks and keys out of the messages and properties of errors: for names that
   * are personal data. Default false.
   */
  redactNames?: boolean;
  /**
   * How those who wait learn of a release. Default `auto`: over a stream where the gateway has one,
   * found out by itself, and by asking at intervals where it has none or loses it ({@link
   * Locks.events} tells). `off`: by asking alone. While somebody waits a stream takes a connection.
   * All pages of an origin have two streams at one gateway, by `navigator.locks`; whoever finds
   * none free asks.
   */
  wakeups?: "auto" | "off";
  /**
   * How a release is announced. `sharded` or `both` when the Java side runs on a Redis Cluster.
   * Default `plain`.
   */
  publish?: "plain" | "sharded" | "both";
}

/** How a redLock behaves beyond what Redisson says. All who take the lock should set the same. */
export interface RedLockOptions {
  /**
   * A node whose Redis has started less than this ago has no vote, 1 000 to 86 400 000; unset, it
   * votes at once. That is right where each write is on disk before it is answered, or where a node
   * that has lost its data is kept away for as long as the longest lease; otherwise two may believe
   * that they hold. Redis is never asked for a longer lease than this: a longer hold is renewed
   * until its end. A longer delay costs a node's vote after each restart. Each node must let
   * scripts run `INFO`.
   */
  rejoinDelayMs?: number;
}

/** What {@link connect.fromEnv} may be told beside the environment. */
export interface FromEnvOptions extends Partial<Omit<UpstashOptions, "url" | "token" | "dialect">> {
  /** Put before each variable's name: `{ prefix: "LOCKS_" }` reads `LOCKS_KV_REST_API_URL`. */
  prefix?: string;
}

/**
 * Describes a gateway. Sends nothing, starts nothing: a client made at module level serves every
 * request of a Worker.
 *
 * @throws {InvalidOptionError}
 */
export function connect(options: ConnectOptions): Locks;
export namespace connect {
  /**
   * Reads `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, else `KV_REST_API_URL` and
   * `KV_REST_API_TOKEN`, from `env` (a Worker's bindings) or from `process.env`.
   *
   * @throws {InvalidOptionError} names the variable that is missing or unusable.
   */
  function fromEnv(env?: object, options?: FromEnvOptions): Locks;
}

/**
 * A client of one gateway, or an {@link owner} of it. Its methods send nothing; they throw at once
 * what is no name or setting.
 *
 * A name is 1 to 512 bytes of UTF-8 without control characters, and braces only as one `{tag}`.
 */
export interface Locks {
  /**
   * The re-entrant lock of this name, as Redisson's `getLock(name)`. @throws {InvalidOptionError}
   */
  lock(name: string): Lock;
  /**
   * A lock that one owner cannot take twice, as `getNonReentrantLock(name)`: the second time
   * rejects with {@link ReentrancyError}.
   *
   * @throws {InvalidOptionError}
   */
  nonReentrantLock(name: string): Lock;
  /**
   * A lock whose waiters only poll, at a pace of their own, as `getSpinLock(name, backOff)`.
   * @throws {InvalidOptionError}
   */
  spinLock(name: string, options?: SpinOptions): Lock;
  /**
   * A lock that is given in the order of arrival, as `getFairLock(name)`. @throws
   * {InvalidOptionError}
   */
  fairLock(name: string, options?: FairOptions): Lock;
  /**
   * The same for an owner that cannot take it twice, as `getNonReentrantFairLock(name)`. @throws
   * {InvalidOptionError}
   */
  nonReentrantFairLock(name: string, options?: FairOptions): Lock;
  /**
   * A lock whose last fencing token is kept for ever, as `getFencedLock(name)`. @throws
   * {InvalidOptionError}
   */
  fencedLock(name: string): Lock;
  /** Many readers or one writer, as `getReadWriteLock(name)`. @throws {InvalidOptionError} */
  readWriteLock(name: string, options?: ReadWriteOptions): ReadWriteLock;
  /**
   * Values of a group, all or none, as `getMultiLock(group, values)` of a client with
   * `StringCodec`: 1 to 1000 texts, or bytes as another codec makes them.
   *
   * @throws {InvalidOptionError}
   */
  groupLock(group: string, values: readonly (string | Uint8Array)[], options?: GroupOptions): Lock;
  /**
   * Several locks as one, all or none, as `getMultiLock(locks)`: 1 to 100, of any kind, of this
   * client or others. {@link Lease.tokenOf} tells the token of each.
   *
   * @throws {InvalidOptionError}
   */
  multiLock(locks: readonly Lock[]): Lock;
  /**
   * One lock on several independent Redis, of which the majority decides, as `getRedLock(locks)`:
   * 3, 5, 7 or 9 plain or fenced locks, each of a client of its own.
   *
   * @throws {InvalidOptionError}
   */
  redLock(locks: readonly Lock[], options?: RedLockOptions): Lock;
  /** A number of permits, as `getSemaphore(name)`. @throws {InvalidOptionError} */
  semaphore(name: string): Semaphore;
  /**
   * Permits with ids and ends of their own, as `getPermitExpirableSemaphore(name)`. @throws
   * {InvalidOptionError}
   */
  permitExpirableSemaphore(name: string, options?: PermitOptions): PermitExpirableSemaphore;
  /**
   * A gate that opens when it was counted down, as `getCountDownLatch(name)`. @throws
   * {InvalidOptionError}
   */
  countDownLatch(name: string): CountDownLatch;
  /**
   * A key that remembers the newest fencing token it has seen, and rejects writes with an older
   * one. One lock protects it: `lock` names it, or the first write decides. A lease of another lock
   * rejects with {@link InvalidOptionError}.
   *
   * @param key 1 to 512 bytes of UTF-8; where it has braces, first a `{tag}`.
   * @throws {InvalidOptionError}
   */
  guard(key: string, options?: GuardOptions): Guard;
  /**
   * The same as one owner: its acquisitions of one lock share one hold, counted here and not in
   * Redis, and one who writes may read. Make one for each task (in a Worker, for each request): it
   * is not for sharing.
   */
  owner(): Locks;
  /**
   * What is noticed of this gateway and of the Redis behind it. How waits go on is not told before
   * somebody has waited; clocks are looked at with each response. There is no end: leave the loop.
   * It sends no request and does not keep a program running.
   */
  events(): AsyncGenerator<ClientEvent, void, void>;
}

/** What a client notices. */
export type ClientEvent =
  | {
      /**
       * How those who wait learn of releases from now on. `stream`: they are told, and ask nobody
       * meanwhile. `polling`: they ask at intervals, since the gateway has no streams or not now,
       * or this runtime opens none, or it is not wanted.
       */
      readonly type: "stream" | "polling";
    }
  | {
      /**
       * Redis' clock shows less than it did: it was set back, or another Redis answers than before.
       * What is held there, by whomever, lasts longer by that time unless it is released; tokens
       * still rise.
       */
      readonly type: "clock-set-back";
      /** By how much at least. Less than a second is not told. */
      readonly byMs: number;
    };

/** How a spin lock pauses between two tries. Redisson's defaults. */
export interface SpinOptions {
  backoff?:
    | {
        /**
         * Pauses that grow from `initialMs` (1 to 60 000; default 1) to `maxMs` (the same; 128) by
         * `factor` (1 to 1000; 2).
         */
        type: "exponential";
        initialMs?: number;
        maxMs?: number;
        factor?: number;
      }
    | {
        /** The same pause each time, 1 to 60 000; default 64. */
        type: "constant";
        delayMs?: number;
      };
}

/** How the queue treats unresponsive waiters. */
export interface FairOptions {
  /**
   * How long a waiter of ours is believed to live after a poll, 1 000 to 60 000; default 10 000. It
   * polls three times as often.
   */
  lifeMs?: number;
  /** How far Java's clocks may be ahead of Redis' own, 0 to 3 600 000; default 20 000. */
  skewMs?: number;
  /**
   * The longest time that a Java waiter asks for, 1 000 to 86 400 000; default 300 000, as in
   * Redisson.
   */
  redissonWaitTimeoutMs?: number;
  /**
   * How long a Java waiter that nobody hears may take to take a free lock, 3 000 to 60 000; default
   * 5 000.
   */
  shortMs?: number;
  /** How long one that is heard may, from `shortMs` to 600 000; default 30 000. */
  longMs?: number;
}

/** How a read-write lock behaves beyond what Redisson says. */
export interface ReadWriteOptions {
  /**
   * Keeps new readers of ours out while a writer waits: for so long after its last try, 100 to 5
   * 000; `true` is 5 000. Default false.
   */
  preferWriters?: boolean | number;
  /**
   * `lockWatchdogTimeout` of the Java programs that read under this lock, 100 to 86 400 000;
   * default 30 000, `null` when there are none. The reading side is asked for so long at a time,
   * and renewed for longer leases.
   */
  peerWatchdogMs?: number | null;
}

/** About a group. */
export interface GroupOptions {
  /** How far the clocks of Java's machines may be off Redis' own, 0 to 60 000; default 1 000. */
  clockSkewMs?: number;
}

/** About permits with ids. */
export interface PermitOptions {
  /**
   * How far the clocks of Java's machines may be off Redis' own, 0 to 60 000; default 1 000; 0
   * where no Java shares them.
   */
  peerSkewMs?: number;
}

/** About a guard. All clients that write to one key have to use the same options. */
export interface GuardOptions {
  /**
   * The name of the lock that protects the key. Unset, the lock of the first write through this
   * object protects it. Set it where each request makes a guard of its own.
   */
  lock?: string;
  /**
   * For how long the newest token is remembered, 60 000 to 315 360 000 000; default 86 400 000. No
   * lease may live longer.
   */
  memoryMs?: number | "for-ever";
}
