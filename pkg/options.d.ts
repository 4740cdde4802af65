// The options of acquisitions and of the kinds of objects: part of index.d.ts.

import type { Lease } from "./objects.js";

/** How long a hold lasts. */
export interface LeaseOptions {
  /**
   * The lease, 100 to 86 400 000. With a number, the hold ends after that time unless you call
   * {@link Lease.renew}. Default for locks: 30 000, renewed after each third until the release.
   * Default for permits: none, so they are held until they are released, even if their holder dies;
   * `"renewed"` gives them the default of locks. With a longer lease, waiters wait longer after a
   * holder has died.
   */
  leaseMs?: number | "renewed";
}

/** The options of a grant. */
export interface GrantOptions extends LeaseOptions {
  /**
   * The number of Redis replicas that must have the grant before it counts, 1 to 8, so that a
   * failover to one of them keeps it. If fewer have it in time, the call rejects with
   * {@link GatewayRefusedError} (`not-replicated`), and if the gateway has no `/pipeline`, with
   * reason `unsupported`; nothing is held then. Default: none, so a failover can lose the grant.
   * Costs a round trip to the replicas.
   */
  replicas?: number;
}

/** The options of an acquisition that waits. */
export interface AcquireOptions extends GrantOptions {
  /** The longest wait, 1 to 86 400 000; default 30 000. `"until-aborted"` needs a `signal`. */
  waitMs?: number | "until-aborted";
  /**
   * Aborts the wait, and undoes a grant that is in flight. The promise rejects with the signal's
   * reason, even if Redis has not confirmed the undo; then the lease expires by itself. Default:
   * none.
   */
  signal?: AbortSignal;
  /**
   * The largest number of requests of the wait, 3 to 10 000; default 40 for a timed wait, unlimited
   * for `"until-aborted"`. A smaller number lengthens the pauses between tries. (A Worker on the
   * free plan has 50 for each request it serves.) Each script that Redis does not know yet costs
   * one more.
   */
  maxRequests?: number;
  /**
   * Called once, when the wait begins: Redis has refused the first try, and a fair lock has queued
   * the request. A spin lock does not call it.
   */
  onWait?: () => void;
}

/** The options of a redLock beyond Redisson's. All clients of the lock must use the same. */
export interface RedLockOptions {
  /**
   * How long a node does not vote after its Redis has started, 1 000 to 86 400 000. Default: it
   * votes at once. That is safe only if each write is on disk before Redis replies, or if a node
   * that lost its data stays offline for as long as the longest lease; otherwise two clients may
   * hold the lock at once. The delay also limits the lease of each request to Redis, so longer
   * holds are renewed until their end. With a longer delay a node is without its vote for longer
   * after each restart; a shorter one costs more renewals. Scripts on each node must be allowed to
   * run `INFO`. The delay protects against a restart, not against a failover
   * ({@link GrantOptions.replicas} does).
   */
  rejoinDelayMs?: number;
}

/** The pauses of a spin lock between two tries. The defaults are Redisson's. */
export interface SpinOptions {
  backoff?:
    | {
        /**
         * Pauses that grow from `initialMs` (1 to 60 000; default 1) to `maxMs` (1 to 60 000;
         * default 128, or `initialMs` if that is more) by the factor `factor` (1 to 1 000; default
         * 2).
         */
        type: "exponential";
        initialMs?: number;
        maxMs?: number;
        factor?: number;
      }
    | {
        /** Equal pauses of `delayMs`, 1 to 60 000; default 64. */
        type: "constant";
        delayMs?: number;
      };
}

/** How the queue treats unresponsive waiters. */
export interface FairOptions {
  /**
   * How long after a poll one of this package's waiters counts as alive, 1 000 to 60 000; default
   * 10 000. The waiter polls three times in it. A dead waiter at the head delays the queue by this
   * time; a shorter time costs more requests of each waiter.
   */
  lifeMs?: number;
  /**
   * How far clocks of Redisson's clients may be ahead of Redis' before these clients evict a live
   * waiter of this package, 0 to 3 600 000; default 20 000. With a larger value, Redisson's waiters
   * wait longer behind a dead waiter of this package; with a smaller one, live waiters are evicted
   * and re-queued more often.
   */
  skewMs?: number;
  /**
   * The longest wait of a Redisson client: its `fairLockWaitTimeout`, or its longest `tryLock`
   * wait. 1 000 to 86 400 000; default 300 000, as in Redisson. If the actual wait is longer,
   * Redisson evicts live waiters of this package.
   */
  redissonWaitTimeoutMs?: number;
  /**
   * How long a free lock is reserved for a Redisson waiter without a subscription, 3 000 to 60 000;
   * default 5 000. With a shorter time the queue skips a dead waiter sooner; with a longer one a
   * slow waiter keeps its place.
   */
  shortMs?: number;
  /**
   * How long a free lock is reserved for a Redisson waiter with a subscription, from `shortMs` to
   * 600 000; default 30 000, or `shortMs` if that is more.
   */
  longMs?: number;
}

/** The options of a read-write lock that Redisson does not have. */
export interface ReadWriteOptions {
  /**
   * How long a refused writer blocks new readers of this package after its last try, 100 to 5 000;
   * `true` is 5 000. Default false: readers join readers, and a writer may starve. A shorter time
   * admits readers sooner after a waiting writer has died.
   */
  preferWriters?: boolean | number;
  /**
   * `lockWatchdogTimeout` of the Redisson clients that acquire the read lock, 100 to 86 400 000;
   * default 30 000; `null` if there are none. It limits the lease of each request for the read
   * lock, because a renewal by such a client shortens the whole lock to this time; longer leases
   * are renewed, those of {@link Lease.renew} too.
   */
  peerWatchdogMs?: number | null;
}

/** The options of a group lock. */
export interface GroupOptions {
  /**
   * The tolerated difference between the clocks of Java's machines and that of Redis, 0 to 60 000;
   * default 1 000.
   */
  clockSkewMs?: number;
}

/** The options of a permit-expirable semaphore. */
export interface PermitOptions {
  /**
   * The tolerated difference between the clocks of Java's machines and that of Redis, 0 to 60 000;
   * default 1 000. Permits of dead holders come back up to twice as much later. Use 0 if no Java
   * program shares the semaphore.
   */
  peerSkewMs?: number;
}

/** The options of a guard. All clients that write to one key must use the same options. */
export interface GuardOptions {
  /**
   * The name of the lock that protects the key. Default: the lock of the first write through this
   * object, even if that write fails. Set it if each request creates its own guard.
   */
  lock?: string;
  /**
   * How long the guard remembers the newest token after the last write, 60 000 to 315 360 000 000;
   * default 86 400 000. No lease may live longer. `"for-ever"` leaves a small key behind for each
   * guarded key.
   */
  memoryMs?: number | "for-ever";
}
