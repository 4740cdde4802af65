/**
 * Holds a lock in a separate process, until a test stops or kills the process. Reports its state on
 * request.
 */

import { createInterface } from "node:readline";

import { connect } from "edgelatch";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, HOLDER_NAME: name, HOLDER_LEASE_MS } = process.env;
const report = (what) => console.log(JSON.stringify(what));

const locks = connect({ url, token, requestTimeoutMs: 60_000 });
const guard = locks.guard(`${name}:value`);
const lease = await holdAndWrite();
report({ token: lease.token });
for await (const _ of createInterface({ input: process.stdin })) {
  const remaining = lease.remaining();
  if (!lease.signal.aborted) await new Promise((fired) => lease.signal.addEventListener("abort", fired));
  const written = await guard.set(lease, "late").then(() => "written", (error) => error.name);
  report({ remaining, aborted: lease.signal.aborted, written });
}

/**
 * Acquires the lock and writes under it; repeats both if a busy machine takes longer than the lease
 * to write.
 */
async function holdAndWrite() {
  for (;;) {
    const lease = await locks.lock(name).acquire({ leaseMs: Number(HOLDER_LEASE_MS), waitMs: 60_000, maxRequests: 10_000 });
    try {
      await guard.set(lease, "first");
      return lease;
    } catch (error) {
      if (lease.remaining() > 0) throw error;
    }
  }
}
