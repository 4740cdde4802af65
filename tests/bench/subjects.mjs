// The two that are compared: each gets a gateway and answers how it takes and gives back one free lock.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const LEASE_MS = 10_000;

export const subjects = {
  async edgelatch({ url, token }) {
    const { connect } = await from(process.env.EDGELATCH_CONSUMER, "edgelatch");
    const lock = connect({ url, token }).lock("bench:edgelatch");
    return {
      acquire: () => lock.tryAcquire({ leaseMs: LEASE_MS }),
      release: async (lease) => (await lease.release()) === "released",
    };
  },

  async upstash({ url, token }) {
    const [{ Redis }, { Lock }] = await Promise.all([
      from(process.env.EDGELATCH_TOOLS, "@upstash/redis"),
      from(process.env.EDGELATCH_TOOLS, "@upstash/lock"),
    ]);
    const lock = new Lock({ id: "bench:upstash", lease: LEASE_MS, redis: new Redis({ url, token }) });
    return { acquire: () => lock.acquire(), release: () => lock.release() };
  },
};

/** One acquire and one release; fails if the lock was not free or was lost. */
export async function pair({ acquire, release }) {
  const held = await acquire();
  if (!held) throw new Error("the lock was not free");
  if (!(await release(held))) throw new Error("the lock was lost");
}

/** Imports a package as a module in that folder would. Wants `--experimental-import-meta-resolve`. */
function from(folder, name) {
  return import(import.meta.resolve(name, pathToFileURL(join(folder, "index.mjs"))));
}
