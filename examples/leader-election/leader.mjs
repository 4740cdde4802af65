import { connect, EdgelatchError } from "edgelatch";
import { setTimeout } from "node:timers/promises";

const LEASE_MS = 5_000;
const PAUSE_MS = 1_000;

const locks = connect.fromEnv();
const lock = locks.lock("leader");
const status = locks.guard("leader:status", { lock: "leader" });
const log = (text) => console.log(`${process.pid} ${text}`);

const ending = new AbortController();
process.once("SIGTERM", () => ending.abort());

log("waits");
while (!ending.signal.aborted) {
  const lease = await lock.acquire({ leaseMs: LEASE_MS, waitMs: "until-aborted", signal: ending.signal }).catch(reportFailure);
  if (!lease) continue;
  log(`leads with token ${lease.token}`);
  await lead(lease).catch(reportFailure);
  await lease.release().catch(reportFailure);
  log("leads no more");
}

/** Does the leader's work until the process is told to end; throws when the lease is lost. */
async function lead(lease) {
  while (!ending.signal.aborted) {
    await status.set(lease, `${process.pid} leads at ${new Date().toISOString()}`);
    await setTimeout(PAUSE_MS, undefined, { signal: ending.signal }).catch(() => {});
    await lease.renew();
  }
}

/** Failures of the gateway and of the lease are no reason to end: another try follows. */
async function reportFailure(error) {
  if (ending.signal.aborted) return;
  if (!(error instanceof EdgelatchError)) throw error;
  log(error.message);
  await setTimeout(PAUSE_MS);
}
