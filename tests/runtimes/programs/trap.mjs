/**
 * Checks every call after the module has failed internally: by a function of the runtime that
 * throws, or by a lack of memory.
 */

import { readFileSync } from "node:fs";

import { BrokenError, connect, init } from "edgelatch/slim";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, TRAP } = process.env;
const MORE_PAGES = 16;

const bytes = readFileSync(new URL(import.meta.resolve("edgelatch/edgelatch.wasm")));
init({ module: TRAP === "memory" ? bounded(bytes) : bytes });
const locks = connect({ url, token });
const name = crypto.randomUUID();
const lease = await locks.lock(name).acquire();
const [lock, guard] = [locks.lock(name), locks.guard(name)];
const signalReason = new Promise((abort) => lease.signal.addEventListener("abort", () => abort(lease.signal.reason)));
const pending = [locks.lock(name).acquire({ waitMs: 60_000 }), locks.events().next()].map(outcome);
// The calls are pending by now, also inside the module.
await locks.lock(name).inspect();

const first = await outcome(TRAP === "memory" ? guard.set(lease, "x".repeat(8 << 20)) : inspectWithoutClock());
const calls = {
  first, signalReason: await signalReason, pending: await Promise.all(pending),
  later: await Promise.all([lease.release(), lease.renew(), lock.tryAcquire(), lock.run(() => {})].map(outcome)),
  synchronous: [() => locks.lock("other"), () => lease.remaining(), () => lease.token, () => connect({ url, token })].map(thrown),
};
const isBroken = (error) => error instanceof BrokenError && error.code === "broken" && error.cause instanceof Error;
console.log(JSON.stringify(Object.entries(calls).map(([what, errors]) => [what, [errors].flat().every(isBroken)])));
// The runtime still waits for the responses to the pending calls.
process.exit();

function outcome(promise) {
  return promise.then((value) => ({ value }), (error) => error);
}

function thrown(call) {
  try {
    return { value: call() };
  } catch (error) {
    return error;
  }
}

/** Inspects while `performance.now` throws, which a clock never does. */
async function inspectWithoutClock() {
  const { now } = performance;
  performance.now = () => {
    throw new Error("planted");
  };
  try {
    return await locks.lock(name).inspect();
  } finally {
    performance.now = now;
  }
}

/** Returns the module with a memory that can grow by only a few pages. */
function bounded(module) {
  const bytes = Uint8Array.from(module);
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  for (;;) {
    const [begin, section] = [at, bytes[at++]];
    const length = number();
    if (section !== 5) {
      at += length;
      continue;
    }
    const end = at + length;
    if (number() !== 1) throw new Error("it has one memory");
    at += 1;
    const least = number();
    const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)]);
    const limits = [1, 1, ...leb(least), ...leb(least + MORE_PAGES)];
    return Uint8Array.from([...bytes.slice(0, begin), 5, ...leb(limits.length), ...limits, ...bytes.slice(end)]);
  }
}
