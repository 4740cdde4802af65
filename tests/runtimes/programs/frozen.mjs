/** Acquires a lock where all shared objects are frozen. */

import { connect } from "edgelatch";

const locks = connect({ url: process.env.EDGELATCH_TEST_URL, token: process.env.EDGELATCH_TEST_TOKEN });
const lock = locks.lock(crypto.randomUUID());
const lease = await lock.acquire();
await lease.renew();
const waiter = lock.acquire({ waitMs: 60_000 });
const released = await lease.release();
await (await waiter).release();
const permits = locks.semaphore(crypto.randomUUID());
await permits.trySetPermits(1);
const inside = await permits.run(1, { leaseMs: 30_000 }, ({ name }) => name === permits.name);
console.log(JSON.stringify([released, inside]));
