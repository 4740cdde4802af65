// Mistakes. None of them may compile; a line that does is reported, since nothing is left to expect.

import { connect } from "edgelatch";
import type { Lease, Lock, Locks, LockState } from "edgelatch";

export function clients(): void {
  // @ts-expect-error: options are needed
  connect();
  // @ts-expect-error: a token is needed
  connect({ url: "https://example.com" });
  // @ts-expect-error: a text, not a URL
  connect({ url: new URL("https://example.com"), token: "t" });
  // @ts-expect-error: one of three words
  connect({ url: "https://example.com", token: "t", keyLocking: "yes" });
  // @ts-expect-error: no such option
  connect({ url: "https://example.com", token: "t", timeout: 5 });
  // @ts-expect-error: a number
  connect({ url: "https://example.com", token: "t", requestTimeoutMs: "5s" });
  // @ts-expect-error: a fetch function answers a promise
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
  // @ts-expect-error: to try is not to wait
  await lock.tryAcquire({ waitMs: 5 });
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
