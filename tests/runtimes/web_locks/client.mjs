/**
 * A client in a process of its own. Requests the lock of this name, holds it until a line arrives
 * on stdin, and prints what happens: `queued`, `granted`, `released`, or the name of the error.
 */

import { once } from "node:events";

import { connect } from "edgelatch";
import { webLocks } from "edgelatch/web-locks";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, NAMESPACE: namespace, NAME: name, CLIENT_ID: clientId, LEASE_MS } = process.env;
const leaseMs = LEASE_MS === undefined ? undefined : Number(LEASE_MS);
const locks = webLocks(connect({ url, token, requestTimeoutMs: 60_000 }), { namespace, clientId, leaseMs });
const end = once(process.stdin, "data");
const released = locks.request(name, async () => {
  console.log("granted");
  await end;
});
released.then(() => console.log("released"), (error) => console.log(error.name)).finally(() => process.stdin.destroy());
await locks.query();
console.log("queued");
