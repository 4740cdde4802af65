// What users write. All of it has to compile, and to be of the types that are written down here.

import { connect } from "edgelatch";
import type { AcquireOptions, ConnectOptions, ErrorCode, Lease, Lock, Locks, LockState, Owner } from "edgelatch";
import {
  EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  OutcomeUnknownError, WaitOverError,
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
    connect({ url: "http://gateway", token: "t", allowHttp: true, requestTimeoutMs: 1_000 }),
    connect({ url: "https://example.com", token: "t", fetch: async (input, init) => fetch(input, init) }),
    connect.fromEnv(),
    connect.fromEnv(env),
    connect.fromEnv(env, { prefix: "LOCKS_", publish: "sharded" }),
    connectSlim(options),
  ];
}

export async function locks(locks: Locks, signal: AbortSignal): Promise<void> {
  const lock: Lock = locks.lock("invoice:42");
  const owner: Owner = locks.owner();
  const owned: Lock = owner.lock("invoice:42");

  const lease = await lock.acquire();
  is<Same<typeof lease, Lease>>();
  const tried = await owned.tryAcquire({ leaseMs: 5_000, signal });
  is<Same<typeof tried, Lease | null>>();
  const options: AcquireOptions = { waitMs: "until-aborted", signal, maxRequests: 10, leaseMs: 1_000 };
  await lock.acquire(options);

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
  if (error instanceof WaitOverError) return `${error.remainingMs?.toFixed()}`;
  if (error instanceof LeaseLostError) return error.reason satisfies "expired" | "gone";
  if (error instanceof GatewayRefusedError) return error.reason === "unauthorized" ? "token" : error.reason;
  if (error instanceof OutcomeUnknownError) return error.freeInMs.toFixed();
  if (error instanceof GatewayUnreachableError) return error.code satisfies "gateway-unreachable";
  if (error instanceof GatewayTooSlowError) return error.code satisfies "gateway-too-slow";
  if (error instanceof EdgelatchError) return kind(error.code);
  throw error;
}

/** Every code, so that a new one is noticed. */
function kind(code: ErrorCode): string {
  switch (code) {
    case "invalid-option":
    case "wait-over":
    case "lease-lost":
    case "gateway-refused":
    case "gateway-unreachable":
    case "gateway-too-slow":
    case "outcome-unknown":
      return code;
    default:
      return code satisfies never;
  }
}
