/** Prints how Node's console shows every object of the package, to any depth. */

import { inspect } from "node:util";

import { connect } from "edgelatch";

const locks = connect({ url: process.env.EDGELATCH_TEST_URL, token: process.env.EDGELATCH_TEST_TOKEN });
const name = crypto.randomUUID();
const lock = locks.lock(name);
const lease = await lock.acquire();
const busy = await locks.lock(name).acquire({ waitMs: 1 }).catch((error) => error);
const refused = await connect({ url: process.env.EDGELATCH_TEST_URL, token: "another" }).lock(name).acquire().catch((error) => error);
const { read, write } = locks.readWriteLock(name);
const all = [
  locks, locks.owner(), lock, lease, lease.signal, lease.events(), locks.events(), read, write, locks.fairLock(name),
  locks.groupLock(name, ["a"]), locks.multiLock([lock, locks.lock(`${name}-2`)]), locks.semaphore(name),
  locks.permitExpirableSemaphore(name), locks.countDownLatch(name), locks.guard(name), busy, refused, await lock.inspect(),
];
const options = { depth: Infinity, showHidden: true, getters: true, showProxy: true };
console.log(JSON.stringify(all.map((one) => inspect(one, options))));
await lease.release();
