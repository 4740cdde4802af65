/** A page that holds a lock for the test that drives it, and records the browser's events. */

import { connect } from "edgelatch";

const query = new URLSearchParams(location.search);
const locks = connect({ url: query.get("url"), token: query.get("token") });
const pageEvents = [];
for (const name of ["freeze", "resume"]) document.addEventListener(name, () => pageEvents.push(name));
document.addEventListener("visibilitychange", () => pageEvents.push(document.visibilityState));
addEventListener("pageshow", ({ persisted }) => persisted && pageEvents.push("restored"));

let lease;

globalThis.hold = async (name, leaseMs) => {
  lease = await locks.lock(name).acquire({ leaseMs, waitMs: 60_000, maxRequests: 10_000 });
  return lease.token;
};

/** Returns its state, now and once the signal has fired. */
globalThis.state = async () => {
  const remaining = lease.remaining();
  if (!lease.signal.aborted) await new Promise((fired) => lease.signal.addEventListener("abort", fired));
  return { remaining, aborted: lease.signal.aborted, reason: lease.signal.reason?.reason, pageEvents };
};
