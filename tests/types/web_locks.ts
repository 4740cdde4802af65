// Typical code of users of `navigator.locks`, and mistakes that must not compile.

import type { Lease, Locks } from "edgelatch";
import { webLocks } from "edgelatch/web-locks";
import type { WebLock, WebLockInfo, WebLockManager, WebLockManagerSnapshot, WebLockOptions } from "edgelatch/web-locks";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<_Proof extends true>(): void {}

/** A library that takes the platform's manager takes this one. */
export const platform = (client: Locks): LockManager => webLocks(client, { namespace: "app" });
export const lock = (held: WebLock): Lock => held;
export const snapshot = (state: WebLockManagerSnapshot): LockManagerSnapshot => state;
export const options = (given: LockOptions): WebLockOptions => given;

export async function requests(client: Locks, signal: AbortSignal): Promise<WebLockInfo[]> {
  const locks: WebLockManager = webLocks(client, { namespace: "app", clientId: "tab-1" });
  const plain = await locks.request("report", (lock) => {
    is<Same<typeof lock, WebLock>>();
    is<Same<typeof lock.lease, Lease>>();
    return lock.lease.token;
  });
  is<Same<typeof plain, number>>();
  const shared = await locks.request("report", { mode: "shared", signal }, async (lock) => lock.mode);
  is<Same<typeof shared, "exclusive" | "shared">>();
  const tried = await locks.request("report", { ifAvailable: true }, async (lock) => {
    is<Same<typeof lock, WebLock | null>>();
    return lock?.name;
  });
  is<Same<typeof tried, string | undefined>>();
  await locks.request("report", { steal: true }, () => {});
  // @ts-expect-error: a namespace is needed
  webLocks(client, {});
  // @ts-expect-error: a callback is needed
  await locks.request("report", { mode: "shared" });
  // @ts-expect-error: there are two modes
  await locks.request("report", { mode: "read" }, () => {});
  // @ts-expect-error: the lock may be null
  await locks.request("report", { ifAvailable: true }, (lock) => lock.name);
  const { held, pending } = await locks.query();
  return [...held, ...pending];
}

export async function waits(client: Locks): Promise<void> {
  const lease = await client.lock("report").acquire({ waitMs: 60_000, onWait: () => console.log("another client holds it") });
  await lease.release();
  // @ts-expect-error: it does not wait
  await client.lock("report").tryAcquire({ onWait: () => {} });
}
