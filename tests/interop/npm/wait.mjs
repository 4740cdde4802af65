/** One of ours that waits. */

import { until } from "../../runtimes/check.mjs";

/**
 * Has a client of ours wait for the object; it was refused once when this has ended. Answers what
 * it waits for, still open.
 */
export async function wait({ client, make }, ask = (object, options) => object.acquire(options)) {
  const own = client();
  const signal = new AbortController().signal;
  const acquired = ask(make(own), { waitMs: "until-aborted", signal });
  await until(() => own.seen.answers > 0, "we wait");
  // Not the promise itself: whoever awaits this function would wait for that too.
  return { acquired };
}
