/**
 * A client in a thread of its own, for the run in which the user breaks things: it acquires the
 * lock with the npm package, renews it, writes with its token, and reports what it notices.
 */

import { connect, EdgelatchError, LeaseLostError } from "./edgelatch/index.js";

import { fetchJson } from "./request.js";

/** The longest time of one attempt of a request, so that a lost answer is noticed soon. */
const REQUEST_MS = 1_000;
const WAIT_MS = 90_000;
/** The pause after a renewal without an answer. */
const RETRY_MS = 100;

/** Whether the answer to the next request is lost, and the time at which one was. */
let losesNext = false;
let lostAt = null;

const actions = {
  live,
  lose: () => (losesNext = true),
  /** Blocks this thread, as a laptop's sleep or a long collection of garbage would. */
  freeze: ({ ms }) => {
    send("frozen");
    const until = Date.now() + ms;
    while (Date.now() < until);
    send("resumed");
  },
};

addEventListener("message", ({ data: { action, ...details } }) => actions[action](details));

function send(event, details = {}) {
  postMessage({ event, at: Date.now(), ...details });
}

async function live({ url, token, key, run, id, holdMs, leaseMs }) {
  const locks = connect({ url, token, fetch: lossyFetch, requestTimeoutMs: REQUEST_MS });
  const write = async (lease) => {
    const query = new URLSearchParams({ run, token: lease.token, value: id });
    const from = Date.now();
    const result = await fetchJson(`/api/write?${query}`, { method: "POST" }).catch((error) => ({ failure: error.message }));
    return { from, ...result };
  };
  let lease = null;
  try {
    send("waiting");
    lease = await locks.lock(key).acquire({ waitMs: WAIT_MS, leaseMs });
    send("held", { token: lease.token, leaseLeftMs: lease.remaining(), as: "alone" });
    send("wrote", await write(lease));
    await keep(lease, holdMs, leaseMs);
    send("releasing");
    send(await lease.release());
  } catch (error) {
    if (!(error instanceof LeaseLostError)) return send("error", { message: error.message });
    send("lost", { reason: error.reason });
    send("late", await write(lease));
  }
}

/** Renews the lease every third of its time, until the end of the hold. */
async function keep(lease, holdMs, leaseMs) {
  const until = Date.now() + holdMs;
  let next = leaseMs / 3;
  while (Date.now() < until) {
    await pause(Math.min(next, until - Date.now()), lease.signal);
    lease.signal.throwIfAborted();
    try {
      await lease.renew();
      next = leaseMs / 3;
      send("renewed", { leaseLeftMs: lease.remaining() });
    } catch (error) {
      if (error instanceof LeaseLostError || !(error instanceof EdgelatchError)) throw error;
      next = RETRY_MS;
      send("unrenewed", { code: error.code });
    }
  }
}

/**
 * Sends a request. If its answer is to be lost, the gateway and Redis have done what it asks for,
 * and the client gets nothing until it gives up.
 */
async function lossyFetch(address, options) {
  const isStream = String(address.url ?? address).includes("/subscribe/");
  if (lostAt !== null && !isStream) {
    send("repeated", { afterMs: Date.now() - lostAt });
    lostAt = null;
  }
  const response = await fetch(address, options);
  if (!losesNext || isStream) return response;
  losesNext = false;
  await response.arrayBuffer();
  lostAt = Date.now();
  send("unanswered");
  return new Promise((_, reject) => {
    const give = () => reject(options.signal.reason);
    if (options.signal.aborted) give();
    else options.signal.addEventListener("abort", give, { once: true });
  });
}

function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}
