/** A page that holds a lock for whoever drives it, and notes what the browser does to it. */

import { connect } from "edgelatch";

const query = new URLSearchParams(location.search);
const locks = connect({ url: query.get("url"), token: query.get("token") });
const happened = [];
for (const name of ["freeze", "resume"]) document.addEventListener(name, () => happened.push(name));
addEventListener("pageshow", ({ persisted }) => persisted && happened.push("came back"));

let lease;

globalThis.hold = async (name, leaseMs) => {
  lease = await locks.lock(name).acquire({ leaseMs });
  return lease.token;
};

/** What it finds at once, and that the signal has fired as soon as other things had their turn. */
globalThis.look = async () => {
  const remaining = lease.remaining();
  await new Promise((turn) => setTimeout(turn));
  return { remaining, aborted: lease.signal.aborted, reason: lease.signal.reason?.reason, happened };
};
