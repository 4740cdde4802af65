import { WaitTimeoutError } from "edgelatch";

/**
 * Returns a middleware that acquires a lock, whose name `nameOf` computes from the context, calls
 * the handler, and releases the lock. The handler finds the lease in `c.get("lease")`.
 */
export const locked = (locks, nameOf, options) => async (c, next) => {
  try {
    await locks.lock(nameOf(c)).run(options, async (lease) => {
      c.set("lease", lease);
      await next();
    });
  } catch (error) {
    if (!(error instanceof WaitTimeoutError)) throw error;
    return c.json({ error: "another request is being handled" }, 503, { "retry-after": "1" });
  }
};
