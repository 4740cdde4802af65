/** Prints how the console shows a client, a lock, a semaphore, a guard and a lease. */

import { inspect } from "node:util";

import { connect } from "edgelatch";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token } = process.env;
const locks = connect({ url, token, requestTimeoutMs: 60_000 });
const lock = locks.fencedLock(`shown:${crypto.randomUUID()}`);
const lease = await lock.acquire();
const show = globalThis.Deno?.inspect ?? globalThis.Bun?.inspect ?? inspect;
const objects = [locks, lock, locks.semaphore("seats"), locks.guard("value"), lease];
const texts = [show, inspect].map((by) => objects.map((one) => by(one, { colors: false })));
console.log(JSON.stringify({ name: lock.name, token: lease.token, texts }));
await lease.release();
