/** An edgelatch waiter. */

import { until } from "../../runtimes/check.mjs";

/**
 * Starts an edgelatch waiter for the object; resolves once it was refused once. Returns the pending
 * acquisition.
 */
export async function wait({ client, make }, acquire = (object, options) => object.acquire(options)) {
  const own = client();
  const signal = new AbortController().signal;
  const acquired = acquire(make(own), { waitMs: "until-aborted", signal });
  await until(() => own.seen.answers > 0, "we wait");
  // Not the promise itself: a caller that awaits this function would also await the acquisition.
  return { acquired };
}
