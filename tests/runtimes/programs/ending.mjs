/** Prints one line, and then has to end by itself; or must not end before it has printed. */

import { connect } from "edgelatch";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, ENDING } = process.env;
// Timers only: a stream's connection would keep the program running.
const locks = connect({ url, token, wakeups: "off", requestTimeoutMs: 60_000 });
const lock = locks.lock(`ending:${crypto.randomUUID()}`);
const print = (text) => console.log(JSON.stringify(text));

const ways = {
  async "a lease is held"() {
    globalThis.lease = await lock.acquire();
    print("held");
  },
  async "event iterators are open"() {
    globalThis.lease = await lock.acquire();
    for (const of of [locks, globalThis.lease]) listen(of.events());
    print("listening");
  },
  async "an acquire is waiting"() {
    // The lease expires by itself, and nothing else ends the wait.
    globalThis.lease = await lock.acquire({ leaseMs: 1_000 });
    await lock.acquire({ waitMs: 600_000, maxRequests: 10_000 });
    print("acquired");
  },
  async "the work of run is pending"() {
    print(await lock.run(() => new Promise((resolve) => unref(setTimeout(resolve, 500, "worked")))));
  },
};

async function listen(events) {
  for await (const event of events) if (event.type === "lost") print("lost");
}

/** Makes sure that the timer alone keeps no program running. */
function unref(timer) {
  if (timer.unref) timer.unref();
  else Deno.unrefTimer(timer);
}

// Not awaited at top level: a runtime that ends before would report an error, and its exit code
// would differ.
ways[ENDING]();
