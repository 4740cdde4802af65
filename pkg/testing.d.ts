/**
 * A gateway in memory for unit tests: locks without a server. It runs a model of the scripts that
 * edgelatch runs in Redis, which the project's tests compare with a real Redis.
 *
 * Its clock is `Date.now`, and its only timer is that of {@link TestGateway.delayReplies}, so it
 * follows the fake timers of Vitest, Jest and Node. `docs/testing.md` has a test of each failure.
 */

/**
 * The kinds of objects that can be held. `read` and `write` are the sides of a read-write lock,
 * `fairRead` and `fairWrite` those of a fair one.
 */
export type HeldKind =
  | "lock" | "fairLock" | "fairRead" | "fairWrite" | "read" | "write" | "groupLock" | "semaphore" | "permitExpirableSemaphore";

/** An object that is held. */
export interface Held {
  readonly name: string;
  /** `lock` also stands for a fenced or spin lock, and for a member of a multi-lock or redLock. */
  readonly kind: HeldKind;
  /**
   * The number of holds: of a lock, the hold counts of all owners; of a semaphore, its permits in
   * use; of a group, its values in use.
   */
  readonly holds: number;
  /**
   * The milliseconds until the last hold of a lock or group ends, or the first hold of a semaphore;
   * null if it has no end.
   */
  readonly remainingMs: number | null;
}

/** The options of {@link TestGateway.hold}. */
export interface HoldOptions {
  /** The kind of the object. Default `lock`. */
  kind?: Exclude<HeldKind, "groupLock">;
  /** The lease in milliseconds, 100 to 86 400 000, which is not renewed. Default 30 000. */
  leaseMs?: number;
  /** The number of permits of a semaphore. Default 1. Ignored for locks. */
  permits?: number;
}

/** A hold of another client. */
export interface OtherHold {
  /** The fencing token of the grant. */
  readonly token: number;
  /** Ends the hold, and notifies waiters. Returns whether it still existed. */
  release(): boolean;
}

/** The options of {@link createTestGateway}. */
export interface TestGatewayOptions {
  /**
   * Returns the time of the gateway's Redis in milliseconds since 1970. Default: `Date.now`, read
   * at each request.
   */
  now?: () => number;
}

/**
 * A gateway in memory, with a Redis of its own: `connect({ url: gateway.url, token: gateway.token,
 * fetch: gateway.fetch })`. Several clients of one gateway exclude each other. Faults apply only to
 * requests of clients, not to the methods below.
 */
export interface TestGateway {
  /** The address for `connect`. No request leaves the process. */
  readonly url: string;
  /** The token for `connect`. */
  readonly token: string;
  /**
   * The function for `connect`. Its responses have only the properties that clients read: status,
   * headers and a body with a reader.
   */
  readonly fetch: (input: string, init?: RequestInit) => Promise<Response>;
  /**
   * Loses the responses to the next requests: the gateway executes them, and then their connections
   * break. Default 1 request.
   */
  loseReplies(requests?: number): void;
  /**
   * Refuses the next requests, with the error of a Redis that reads its data: nothing is executed.
   * Default 1 request.
   */
  refuse(requests?: number): void;
  /** Sets how many milliseconds each response takes from now on. At first none. */
  delayReplies(ms: number): void;
  /**
   * Stops the gateway, or starts it again with all data. While it is down, it refuses connections;
   * its streams end.
   */
  setDown(isDown: boolean): void;
  /**
   * Ends the leases of all holds of this name, of any kind and owner, as if their time were over.
   * Holders notice it at their next renewal, waiters when the lease would have ended. Returns
   * whether there was one.
   */
  expire(name: string): boolean;
  /**
   * Acquires an object for another client.
   * @throws {Error} the object cannot be acquired at once, or the name is invalid.
   * @throws {TypeError} an option is not acceptable.
   */
  hold(name: string, options?: HoldOptions): OtherHold;
  /** Lists what is held, by name. */
  held(): Held[];
}

/**
 * Creates a gateway in memory.
 * @throws {TypeError} an option is not acceptable.
 */
export function createTestGateway(options?: TestGatewayOptions): TestGateway;
