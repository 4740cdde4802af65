// Mistakes that must not compile. TypeScript reports a line that does, since the expected error is
// missing.

import { connect } from "edgelatch";
import type {
  CountDownLatch, GatewayRefusedError, Guard, Lease, Lock, Locks, LockState, NotExecutedError, PermitExpirableSemaphore, Semaphore,
} from "edgelatch";

export function clients(): void {
  // @ts-expect-error: options are needed
  connect();
  // @ts-expect-error: a token is needed
  connect({ url: "https://example.com" });
  // @ts-expect-error: a token is needed
  connect({ url: "https://example.com", dialect: "upstash" });
  // @ts-expect-error: one of two words
  connect({ url: "https://example.com", token: "t", wakeups: false });
  // @ts-expect-error: no such dialect
  connect({ url: "https://example.com", token: "t", dialect: "redis" });
  // @ts-expect-error: a text, not a URL
  connect({ url: new URL("https://example.com"), token: "t" });
  // @ts-expect-error: one of three words
  connect({ url: "https://example.com", token: "t", keyLocking: "yes" });
  // @ts-expect-error: no such option
  connect({ url: "https://example.com", token: "t", timeout: 5 });
  // @ts-expect-error: a number
  connect({ url: "https://example.com", token: "t", requestTimeoutMs: "5s" });
  // @ts-expect-error: a fetch function returns a promise
  connect({ url: "https://example.com", token: "t", fetch: () => new Response() });
  // @ts-expect-error: not the values, an object with them
  connect.fromEnv("https://example.com", "t");
  // @ts-expect-error: these come from the environment
  connect.fromEnv({}, { url: "https://example.com" });
  // @ts-expect-error: not a class
  new connect({ url: "https://example.com", token: "t" });
}

export async function locks(locks: Locks, lock: Lock): Promise<void> {
  // @ts-expect-error: a name is a text
  locks.lock(42);
  // @ts-expect-error: an owner gives locks, by their names
  locks.owner("me");
  // @ts-expect-error: a number of milliseconds
  await lock.acquire({ waitMs: "5s" });
  // @ts-expect-error: the one word is another
  await lock.acquire({ waitMs: "until-cancelled" });
  // @ts-expect-error: a number of milliseconds
  await lock.acquire({ leaseMs: "5s" });
  // @ts-expect-error: the signal, not its controller
  await lock.acquire({ signal: new AbortController() });
  // @ts-expect-error: how many, not which
  await lock.acquire({ replicas: ["10.0.0.1"] });
  // @ts-expect-error: a number
  await lock.tryAcquire({ replicas: "all" });
  // @ts-expect-error: a hold is prolonged where it is
  await (await lock.acquire()).renew({ replicas: 1 });
  // @ts-expect-error: to try is not to wait
  await lock.tryAcquire({ waitMs: 5 });
  // @ts-expect-error: a steal does not wait
  await locks.fairReadWriteLock("a").steal({ waitMs: 5 });
  // @ts-expect-error: the work is missing
  await lock.run({ waitMs: 5 });
  // @ts-expect-error: the work comes last
  await lock.run(() => 5, { waitMs: 5 });
  // @ts-expect-error: null is possible
  (await lock.tryAcquire()).token;
  // @ts-expect-error: the name is for reading
  lock.name = "other";
  // @ts-expect-error: a lock is acquired, not released
  await lock.release();
  // @ts-expect-error: not awaited
  lock.inspect().locked;
}

export async function kinds(locks: Locks, semaphore: Semaphore, withIds: PermitExpirableSemaphore): Promise<void> {
  // @ts-expect-error: one of two policies
  locks.spinLock("a", { backoff: { type: "linear" } });
  // @ts-expect-error: the other policy's
  locks.spinLock("a", { backoff: { type: "constant", factor: 2 } });
  // @ts-expect-error: no settings
  locks.fencedLock("a", {});
  // @ts-expect-error: one of its two sides
  await locks.readWriteLock("a").acquire();
  // @ts-expect-error: values are needed
  locks.groupLock("a");
  // @ts-expect-error: a list
  locks.multiLock(locks.lock("a"), locks.lock("b"));
  // @ts-expect-error: permits are no lock
  locks.multiLock([semaphore]);
  // @ts-expect-error: the number comes first
  await semaphore.acquire({ waitMs: 5 });
  // @ts-expect-error: the number comes first
  await semaphore.run(() => 5);
  // @ts-expect-error: ids, not a number
  await withIds.release(1);
  // @ts-expect-error: an explicit null
  await withIds.updateLeaseTime(["id"]);
}

export async function fencing(locks: Locks, lease: Lease, lock: Lock, guard: Guard, latch: CountDownLatch): Promise<void> {
  // @ts-expect-error: the lease, not its lock
  await guard.set(lock, "value");
  // @ts-expect-error: a text
  await guard.set(lease, 5);
  // @ts-expect-error: the lock's name
  locks.guard("key", { lock });
  // @ts-expect-error: a list of keys
  await lease.eval("return 1", "key");
  // @ts-expect-error: whatever the script returns
  (await lease.eval("return 1")).toFixed();
  // @ts-expect-error: an async iterator
  for (const event of lease.events()) event;
  // @ts-expect-error: a renewal has a length
  await lease.renew({ leaseMs: "renewed" });
  // @ts-expect-error: a latch is not held
  await latch.wait({ leaseMs: 5 });
  // @ts-expect-error: nor is it granted
  await latch.wait({ replicas: 1 });
}

export function errors(notDone: NotExecutedError, refused: GatewayRefusedError): void {
  // @ts-expect-error: no error has this property
  notDone.reason;
  // @ts-expect-error: not after this one
  notDone.freeInMs;
  // @ts-expect-error: another kind's
  notDone.code === "outcome-unknown";
  // @ts-expect-error: no such reason
  refused.reason === "not-executed";
}

export async function leases(lease: Lease, state: LockState): Promise<void> {
  // @ts-expect-error: the token is for reading
  lease.token = 1;
  // @ts-expect-error: the signal is for reading
  lease.signal = new AbortController().signal;
  // @ts-expect-error: a state is a snapshot
  state.locked = false;
  // @ts-expect-error: milliseconds in an object
  await lease.renew(5_000);
  // @ts-expect-error: a call
  lease.remaining > 5;
  // @ts-expect-error: not a truth value
  (await lease.release()) === true;
  // @ts-expect-error: generated code has it, users do not
  lease.free();
}

export async function blocks(lock: Lock): Promise<void> {
  // @ts-expect-error: without `await` nothing would be released
  using lease = await lock.acquire();
  // @ts-expect-error: a promise is no lease
  await using promised = lock.acquire();
}
