// Typical code of users of `redlock` and `@upstash/lock`, and mistakes that must not compile.

import type { Locks } from "edgelatch";
import Redlock, { ExecutionError, Lock, ResourceLockedError } from "edgelatch/redlock";
import type { ExecutionResult, ExecutionStats, RedlockAbortSignal, Settings } from "edgelatch/redlock";
import { Lock as UpstashLock } from "edgelatch/upstash-lock";
import type { LockAcquireConfig, LockConfig, LockCreateConfig, LockStatus, RetryConfig } from "edgelatch/upstash-lock";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<_Proof extends true>(): void {}

export async function redlock(client: Locks): Promise<void> {
  const settings: Partial<Settings> = { retryCount: 3, retryDelay: 100, retryJitter: 50, driftFactor: 0.01 };
  const redlock = new Redlock([client], settings);
  redlock.on("error", (error) => is<Same<typeof error, Error>>()).once("error", console.error);
  let lock: Lock = await redlock.acquire(["a", "b"], 5_000, { automaticExtensionThreshold: 500 });
  lock = await lock.extend(5_000);
  lock = await redlock.extend(lock, 5_000, settings);
  is<Same<typeof lock.token, number | null>>();
  const result: ExecutionResult = await lock.release();
  const stats: ExecutionStats | undefined = await result.attempts[0];
  if (stats) is<Same<typeof stats.votesFor, Set<Locks>>>();
  const used = await redlock.using(["a"], 5_000, async (signal) => {
    is<Same<typeof signal, RedlockAbortSignal>>();
    if (signal.aborted) throw signal.error;
    return 5;
  });
  is<Same<typeof used, number>>();
  await redlock.using(["a"], 5_000, settings, async () => {});
  await redlock.quit();
  // @ts-expect-error: an edgelatch client
  new Redlock([{ evalsha: () => {} }]);
  // @ts-expect-error: no scripts
  new Redlock([client], {}, { acquireScript: "return 0" });
  // @ts-expect-error: an array of resources
  await redlock.acquire("a", 5_000);
  // @ts-expect-error: there is one event
  redlock.on("end", () => {});
}

export function errors(error: unknown): number {
  if (error instanceof ExecutionError) return error.attempts.length;
  return error instanceof ResourceLockedError ? error.message.length : 0;
}

export async function upstash(redis: Locks): Promise<void> {
  const retry: RetryConfig = { attempts: 3, delay: 100 };
  const options: LockCreateConfig = { id: "a", redis, lease: 5_000, retry };
  const lock = new UpstashLock(options);
  const acquire: LockAcquireConfig = { lease: 5_000, uuid: "u" };
  const acquired = [await lock.acquire(), await lock.acquire(acquire), await lock.extend(5_000), await lock.release()];
  is<Same<typeof acquired, boolean[]>>();
  const status: LockStatus = await lock.getStatus();
  is<Same<LockConfig["UUID"], string | null>>();
  is<Same<typeof lock.token, number | null>>();
  console.log(status, lock.id, lock.signal?.aborted);
  // @ts-expect-error: an edgelatch client
  new UpstashLock({ id: "a", redis: "https://example.com" });
  // @ts-expect-error: both are needed, as in the original
  await lock.acquire({ retry: { attempts: 3 } });
}
