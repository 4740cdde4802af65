/** Holds a lock in a process of its own, until it is stopped or killed from outside. Says what it finds each time it is asked. */

import { createInterface } from "node:readline";

import { connect } from "edgelatch";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, HOLDER_NAME: name, HOLDER_LEASE_MS } = process.env;
const say = (what) => console.log(JSON.stringify(what));

const locks = connect({ url, token });
const guard = locks.guard(`${name}:value`);
const lease = await locks.lock(name).acquire({ leaseMs: Number(HOLDER_LEASE_MS) });
await guard.set(lease, "first");
say({ token: lease.token });
for await (const _ of createInterface({ input: process.stdin })) {
  const remaining = lease.remaining();
  if (!lease.signal.aborted) await new Promise((fired) => lease.signal.addEventListener("abort", fired));
  const written = await guard.set(lease, "late").then(() => "written", (error) => error.name);
  say({ remaining, aborted: lease.signal.aborted, written });
}
