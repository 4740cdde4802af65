/**
 * One contender of the page: waits for the lock, holds it for a while, releases it, and tells its life line by line.
 *
 * The page kills a contender by cutting its connection. A holder that loses its client stops where it stands, as one
 * that crashed would: no more renewals and no release, so that its lease runs out by itself. A waiter that loses its
 * client leaves the queue.
 */

import { EdgelatchError, LeaseLostError } from "edgelatch";

import { describe } from "./failure.js";
import { pageLock } from "./state.js";
import { guardedWrite } from "./store.js";

/** Covers the turns of all the others on a page, a few of them killed. */
const WAIT_MS = 60_000;

/** How often an empty line is sent: on some ways a lost connection is noticed only when something is sent. */
const PULSE_MS = 100;

/** `POST /api/contend?id=<name>&holdMs=<number>&leaseMs=<number>&run=<name>`: answers a stream of JSON lines. */
export function contend({ request, env, context, query }) {
  const run = query.name("run");
  const contender = {
    env,
    run,
    id: query.name("id"),
    holdMs: query.integer("holdMs", 100, 15_000),
    leaseMs: query.integer("leaseMs", 500, 15_000),
    lock: pageLock(env, run),
    story: new Story(request.signal),
  };
  // Keeps the Worker going for a moment after its client left, so that a waiter can still undo its request.
  context.waitUntil(live(contender));
  return new Response(contender.story.readable, {
    headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
  });
}

async function live(contender) {
  const { story } = contender;
  try {
    await waitAndHold(contender);
  } catch (error) {
    if (story.left.aborted) return;
    const { code, message } = describe(error);
    story.tell("error", { code, message });
  } finally {
    story.end();
  }
}

async function waitAndHold(contender) {
  const { env, run, id, lock, leaseMs, story } = contender;
  story.tell("waiting");
  const lease = await lock.acquire({ leaseMs, waitMs: WAIT_MS, signal: story.left });
  story.tell("held", { token: lease.token, leaseLeftMs: lease.remaining() });
  try {
    const written = await guardedWrite(env, run, lease.token, `worker-${id}`, { signal: lease.signal });
    story.tell("wrote", written);
    await work(lease, contender);
  } catch (error) {
    if (error instanceof LeaseLostError) return story.tell("lost", { reason: error.reason });
    if (!story.left.aborted) await lease.release();
    throw error;
  }
  if (story.left.aborted) return;
  // Told before it is sent: nobody else can be seen holding the lock before this moment.
  story.tell("releasing");
  story.tell(await lease.release());
}

/** Keeps the lease for `holdMs`, renewing it at a third of its time, or until the client has left. */
async function work(lease, { holdMs, leaseMs, story }) {
  const until = Date.now() + holdMs;
  for (;;) {
    await pause(Math.min(leaseMs / 3, until - Date.now()), [story.left, lease.signal]);
    if (story.left.aborted || Date.now() >= until) return;
    lease.signal.throwIfAborted();
    try {
      await lease.renew();
      story.tell("renewed", { leaseLeftMs: lease.remaining() });
    } catch (error) {
      if (error instanceof LeaseLostError || !(error instanceof EdgelatchError)) throw error;
      // The hold stands as it was: try again at the next turn, until `lease.signal` says that it is over.
    }
  }
}

function pause(ms, signals) {
  const over = AbortSignal.any(signals);
  return new Promise((done) => {
    if (over.aborted) return done();
    const timer = setTimeout(done, Math.max(0, ms));
    over.addEventListener("abort", () => done(clearTimeout(timer)), { once: true });
  });
}

/** The stream of events, and whether somebody still listens to it. */
class Story {
  readable;
  #writer;
  #left = new AbortController();
  #encoder = new TextEncoder();
  #pulse = setInterval(() => this.#send("\n"), PULSE_MS);

  constructor(requestSignal) {
    const { readable, writable } = new TransformStream();
    this.readable = readable;
    this.#writer = writable.getWriter();
    const leave = () => {
      clearInterval(this.#pulse);
      this.#left.abort(new DOMException("The client left.", "AbortError"));
    };
    // Which of the two comes first depends on where the connection was cut.
    requestSignal.addEventListener("abort", leave, { once: true });
    this.#writer.closed.catch(leave);
    if (requestSignal.aborted) leave();
  }

  /** Aborted when the client is gone. */
  get left() {
    return this.#left.signal;
  }

  /** Does not wait for the line to be read: a slow reader must not slow the holder. */
  tell(event, details = {}) {
    this.#send(JSON.stringify({ event, at: Date.now(), ...details }) + "\n");
  }

  #send(line) {
    this.#writer.write(this.#encoder.encode(line)).catch(() => {});
  }

  end() {
    clearInterval(this.#pulse);
    this.#writer.close().catch(() => {});
  }
}
