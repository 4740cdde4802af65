// Typical code of users, which must compile and have the types that this file states.

import { connect } from "edgelatch";
import type {
  AcquireOptions, ConnectOptions, CountDownLatch, ErrorCode, FairOptions, FairReadWriteLock, FairReadWriteRequest, FairReadWriteState,
  GrantOptions, Guard, Lease, LeaseEvent, Lock, Locks,
  LockState, PermitExpirableSemaphore, PermitsState, ReadWriteLock, Semaphore, SemaphoreState, SpinOptions,
} from "edgelatch";
import {
  BrokenError, EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  ReentrancyError, NotExecutedError, OutcomeUnknownError, ScriptFailedError, NotSetUpError, QueueFullError, StaleTokenError, StartError,
  WaitTimeoutError,
} from "edgelatch";
import { connect as connectSlim, init } from "edgelatch/slim";
import module from "edgelatch/edgelatch.wasm";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<_Proof extends true>(): void {}

export function clients(env: { UPSTASH_REDIS_REST_URL: string; UPSTASH_REDIS_REST_TOKEN: string }): Locks[] {
  const options: ConnectOptions = { url: "https://example.com", token: "t", fetch, keyLocking: "auto", publish: "both" };
  init({ module });
  init({ module: new Uint8Array() });
  init({ module: new WebAssembly.Module(new Uint8Array()) });
  return [
    connect(options),
    connect({ url: "http://gateway", token: "t", allowHttp: true, requestTimeoutMs: 1_000, wakeups: "off" }),
    connect({ url: "https://example.com", token: "t", fetch: async (input, init) => fetch(input, init) }),
    connect({ url: "http://127.0.0.1:7379", dialect: "webdis" }),
    connect({ url: "https://example.com", dialect: "webdis", token: "user:password" }),
    connect.fromEnv(),
    connect.fromEnv(env),
    connect.fromEnv(env, { prefix: "LOCKS_", publish: "sharded" }),
    connectSlim(options),
  ];
}

export async function locks(locks: Locks, signal: AbortSignal): Promise<void> {
  const lock: Lock = locks.lock("invoice:42");
  const owner: Locks = locks.owner();
  const owned: Lock = owner.lock("invoice:42");

  const lease = await lock.acquire();
  is<Same<typeof lease, Lease>>();
  const tried = await owned.tryAcquire({ leaseMs: 5_000, signal });
  is<Same<typeof tried, Lease | null>>();
  const options: AcquireOptions = { waitMs: "until-aborted", signal, maxRequests: 10, leaseMs: 1_000, replicas: 2 };
  await lock.acquire(options);
  const grant: GrantOptions = { leaseMs: "renewed", replicas: 1 };
  await lock.tryAcquire(grant);

  const number = await lock.run(() => 5);
  is<Same<typeof number, number>>();
  const text = await lock.run({ waitMs: 5_000 }, async ({ token, signal }) => `${token.toFixed()} ${signal.aborted}`);
  is<Same<typeof text, string>>();

  const forced = await lock.forceRelease();
  is<Same<typeof forced, boolean>>();
  const state = await lock.inspect();
  is<Same<typeof state, LockState>>();
  is<Same<typeof state.remainingMs, number | null>>();
}

export async function kinds(locks: Locks, other: Locks): Promise<void> {
  const backoff: SpinOptions["backoff"] = { type: "constant", delayMs: 5 };
  const fair: FairOptions = { lifeMs: 5_000, skewMs: 0, redissonWaitTimeoutMs: 60_000, shortMs: 1_000, longMs: 5_000 };
  const all: Lock[] = [
    locks.nonReentrantLock("a"),
    locks.spinLock("a"),
    locks.spinLock("a", { backoff }),
    locks.spinLock("a", { backoff: { type: "exponential", initialMs: 1, maxMs: 128, factor: 2 } }),
    locks.fairLock("a", fair),
    locks.nonReentrantFairLock("a"),
    locks.fencedLock("a"),
    locks.groupLock("a", ["x", new Uint8Array([1])], { clockSkewMs: 0 }),
  ];
  const lease = await locks.multiLock([...all, other.lock("b")]).acquire();
  is<Same<ReturnType<typeof lease.tokenOf>, number | null>>();
  await locks.redLock(all).run({ leaseMs: 5_000 }, ({ token }) => token);
  locks.redLock(all, { rejoinDelayMs: 60_000 });
  const { read, write }: ReadWriteLock = locks.readWriteLock("a", { preferWriters: 1_000, peerWatchdogMs: null });
  await (await read.acquire()).release();
  await (await write.tryAcquire())?.release();
}

export async function fairReadWrite(locks: Locks, signal: AbortSignal): Promise<readonly FairReadWriteRequest[]> {
  const lock: FairReadWriteLock = locks.fairReadWriteLock("{a}b", { clientId: "tab", lifeMs: 1_000, maxHolders: 5, maxWaiters: 9 });
  const sides: Lock[] = [lock.read, lock.write];
  await locks.multiLock(sides).tryAcquire();
  is<Same<Awaited<ReturnType<typeof lock.read.tryAcquire>>, Lease | null>>();
  const lease = await lock.steal({ leaseMs: "renewed", replicas: 1, signal });
  is<Same<typeof lease, Lease>>();
  const state: FairReadWriteState = await lock.inspect();
  is<Same<typeof state.mode, "shared" | "exclusive" | null>>();
  const { held, pending } = await lock.query();
  return state.locked && (await lock.forceRelease()) ? held : pending;
}

export async function permits(semaphore: Semaphore, withIds: PermitExpirableSemaphore, latch: CountDownLatch): Promise<void> {
  await semaphore.acquire();
  await semaphore.acquire(2, { leaseMs: "renewed", waitMs: 5, replicas: 1 });
  is<Same<Awaited<ReturnType<typeof semaphore.tryAcquire>>, Lease | null>>();
  const text = await semaphore.run(1, () => "done");
  is<Same<typeof text, string>>();
  await withIds.run(undefined, { leaseMs: 1_000 }, async ({ permitIds }) => withIds.release(permitIds));
  const state: SemaphoreState = await semaphore.inspect();
  const states: PermitsState = await withIds.inspect(["id"]);
  const numbers: number[] = [
    state.available, states.total, await semaphore.addPermits(-1), await semaphore.drainPermits(), await withIds.setPermits(5),
    await withIds.release(["id"]), await latch.countDown(), await latch.count(),
  ];
  const flags: boolean[] = [
    await semaphore.trySetPermits(numbers.length, { lifeMs: 1_000 }), await semaphore.releaseIfExists(), await withIds.forceRelease(),
    await withIds.updateLeaseTime(["id"], null), await latch.trySetCount(2), await latch.delete(),
  ];
  await latch.wait({ waitMs: flags.length });
}

export async function fencing(locks: Locks, lease: Lease): Promise<void> {
  const guard: Guard = locks.guard("key", { memoryMs: "for-ever", lock: "a" });
  await guard.claim(lease);
  await guard.set(lease, "value", { lifeMs: 1_000, name: "a" });
  await guard.delete(lease);
  const newest = await guard.newest();
  is<Same<typeof newest, number | null>>();
  const answer = await lease.eval("return 1", ["{a}:key"], ["value"], { once: false });
  is<Same<typeof answer, unknown>>();
  for await (const event of lease.events()) {
    is<Same<typeof event, LeaseEvent>>();
    if (event.type === "lost") console.log(event.reason, event.remainingMs);
  }
  for await (const event of locks.events()) {
    if (event.type === "clock-set-back") is<Same<typeof event.byMs, number>>();
    else is<Same<typeof event.type, "stream" | "polling">>();
  }
}

export async function leases(lease: Lease): Promise<void> {
  is<Same<typeof lease.token, number>>();
  is<Same<typeof lease.signal, AbortSignal>>();
  const [remaining, held]: [number, boolean] = [lease.remaining(), await lease.isHeld()];
  await lease.renew();
  await lease.renew({ leaseMs: remaining + (held ? 1 : 2) });
  const end = await lease.release();
  is<Same<typeof end, "released" | "lost">>();
}

export async function blocks(lock: Lock): Promise<number> {
  await using lease = await lock.acquire({ waitMs: 5_000 });
  await using other = await lock.tryAcquire();
  return lease.token + (other?.token ?? 0);
}

export function errors(error: unknown): string {
  if (error instanceof InvalidOptionError) return `${error.option}: ${error.accepted}`;
  if (error instanceof WaitTimeoutError) return `${error.remainingMs?.toFixed()}`;
  if (error instanceof LeaseLostError) return error.reason satisfies "expired" | "gone" | "stolen";
  if (error instanceof ReentrancyError) return error.reason satisfies "held" | "reads";
  if (error instanceof NotExecutedError) return error.code satisfies "not-executed";
  if (error instanceof StaleTokenError) return `${error.reason satisfies "superseded" | "too-old" | "token-ahead"} ${error.newest}`;
  if (error instanceof ScriptFailedError) return error.code satisfies "script-failed";
  if (error instanceof GatewayRefusedError) return refusal(error.reason);
  if (error instanceof OutcomeUnknownError) return error.freeInMs.toFixed();
  if (error instanceof GatewayUnreachableError) return error.code satisfies "gateway-unreachable";
  if (error instanceof GatewayTooSlowError) return error.code satisfies "gateway-too-slow";
  if (error instanceof BrokenError) return error.code satisfies "broken";
  if (error instanceof NotSetUpError) return error.code satisfies "not-set-up";
  if (error instanceof QueueFullError) return error.code satisfies "queue-full";
  if (error instanceof StartError) return error.code satisfies "start-failed";
  throw error;
}

/** `EdgelatchError` matches all errors; `code` narrows to one of them. */
export function narrowed(error: unknown): string {
  if (!(error instanceof EdgelatchError)) throw error;
  if (error.code === "gateway-refused") return refusal(error.reason);
  if (error.code === "lease-lost") return error.reason satisfies "expired" | "gone" | "stolen";
  const about: (string | undefined)[] = [error.lock, error.key, error.host];
  return kind(error.code) + about.join() + (error.status?.toFixed() ?? "");
}

/** The types of environment variables. */
export function fromVariables(env: { URL: string | undefined; TOKEN: string | undefined }): Locks {
  return connect({ url: env.URL, token: env.TOKEN, redactNames: true });
}

export function others(error: unknown): string {
  if (error instanceof EdgelatchError) return kind(error.code);
  throw error;
}

/** Lists every reason, so that a new one is noticed. */
function refusal(reason: GatewayRefusedError["reason"]): string {
  switch (reason) {
    case "unauthorized":
    case "out-of-memory":
    case "wrong-type":
    case "token-range":
    case "unavailable":
    case "not-a-gateway":
    case "unsupported":
    case "not-replicated":
    case "token-regressed":
    case "other":
      return reason;
    default:
      return reason satisfies never;
  }
}

/** Lists every code, so that a new one is noticed. */
function kind(code: ErrorCode): string {
  switch (code) {
    case "invalid-option":
    case "wait-timeout":
    case "lease-lost":
    case "queue-full":
    case "reentrancy":
    case "not-executed":
    case "stale-token":
    case "script-failed":
    case "gateway-refused":
    case "gateway-unreachable":
    case "gateway-too-slow":
    case "outcome-unknown":
    case "broken":
    case "start-failed":
    case "not-set-up":
      return code;
    default:
      return code satisfies never;
  }
}
