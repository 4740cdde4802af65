/**
 * A run in which the user breaks things: each client is a thread of the page that uses the npm
 * package and the gateway, and the page shows which of them notices what, and when.
 */

import { Contender } from "./contender.js";
import { labelsOf, secondsText, tokenText } from "./labels.js";
import { LockRun } from "./lock-run.js";
import { fetchJson } from "./request.js";
import { hasOverwritten } from "./writes.js";

const COUNT = 3;
const HOLD_MS = 12_000;
const LEASE_MS = 6_000;
/** How long a holder is frozen, in leases: until the next client has had the time to write. */
const FROZEN_LEASES = 5 / 3;

/** A contender that runs in a thread of the page. */
class Player extends Contender {
  /** The times at which the answer to a request was lost. */
  unanswered = [];
  /** The time in which its thread was stopped: `from`, and `to` or null; null before. */
  frozen = null;
  #thread = null;

  get isFrozen() {
    return this.frozen !== null && this.frozen.to === null;
  }

  /** Starts the thread and passes on its events, until it has ended. */
  live(details, onEvent) {
    this.#thread = new Worker(new URL("player.js", import.meta.url), { type: "module" });
    return new Promise((done) => {
      this.#thread.addEventListener("error", ({ message }) => {
        onEvent({ event: "error", at: Date.now(), message: message ?? "its thread did not start" });
        done();
      });
      this.#thread.addEventListener("message", ({ data }) => {
        onEvent(data);
        if (["released", "late", "error"].includes(data.event)) {
          this.end();
          done();
        }
      });
      this.tell({ action: "live", ...details });
    });
  }

  tell(message) {
    this.#thread.postMessage(message);
  }

  end() {
    this.#thread?.terminate();
  }

  apply(event) {
    if (event.event === "frozen") this.frozen = { from: event.at, to: null };
    else if (event.event === "resumed") this.frozen.to = event.at;
    else if (event.event === "unanswered") this.unanswered.push(event.at);
    else if (event.event === "late") this.lateWrite = event;
    else super.apply(event);
  }
}

export class BreakRun extends LockRun {
  /** The times in which Redis was down: `from`, and `to` or null. */
  outages = [];
  /** The writes that the store has accepted. */
  #writes = [];
  #leaseMs;

  /** `leaseMs` is longer on a machine that is too slow for the default. */
  constructor(leaseMs = LEASE_MS) {
    super(COUNT);
    this.#leaseMs = leaseMs;
    this.labels = { ...labelsOf("lock"), holds: (one) => (one.isFrozen ? "Frozen" : "Holds the lock") };
    this.contenders = this.contenders.map(({ name }, index) => new Player(index + 1, { name, role: "alone", query: "" }));
  }

  /** The present time: the clients run on the page's own clock. */
  now() {
    return Date.now();
  }

  actionOn() {
    return null;
  }

  dispose() {
    for (const one of this.contenders) one.end();
  }

  /** Whether there is a holder that can be broken. */
  get canBreak() {
    return this.inside.some(({ isFrozen }) => !isFrozen);
  }

  get isRedisDown() {
    return this.outages.at(-1)?.to === null;
  }

  async start() {
    this.started = true;
    this.note(`${COUNT} clients in threads of this page request the same lock. Break something.`);
    try {
      await this.#live(await fetchJson(`/api/token?run=${this.name}&leaseMs=${this.#leaseMs}`, { method: "POST" }));
      this.verdict = this.#judge();
    } catch (error) {
      this.verdict = { isKept: false, sentence: error.message };
    }
    this.endedAt = this.now();
    this.changed();
  }

  /** Lets all contenders live, until the last has ended. */
  async #live(details) {
    const lives = this.contenders.map((one) => {
      const own = { ...details, run: this.name, id: `worker-${one.number}`, holdMs: HOLD_MS, leaseMs: this.#leaseMs };
      return one.live(own, (event) => this.#onEvent(one, event));
    });
    await Promise.all(lives);
  }

  /** Loses the answer to the holder's next request. */
  lose() {
    const [one] = this.inside;
    this.note(`You lose the answer to the next request of ${one.name}.`, "bad");
    one.tell({ action: "lose" });
  }

  /** Stops the holder's thread for longer than its lease. */
  freeze() {
    const [one] = this.inside;
    const ms = this.#leaseMs * FROZEN_LEASES;
    this.note(`You freeze ${one.name} for ${secondsText(ms)}; its lease is ${secondsText(this.#leaseMs)}.`, "bad");
    one.tell({ action: "freeze", ms });
  }

  /** Kills Redis, which comes back empty. */
  async killRedis() {
    const outage = { from: this.now(), to: null };
    this.outages.push(outage);
    this.note("You kill Redis. It has nothing on disk.", "bad");
    try {
      await fetchJson("/api/outage", { method: "POST" });
      this.note("Redis is back, empty.");
    } catch (error) {
      this.outages.pop();
      this.note(error.message, "bad");
    }
    outage.to = this.now();
    this.changed();
  }

  #onEvent(one, event) {
    one.apply(event);
    if (event.accepted) this.#writes.push({ token: one.token, from: event.from, at: event.at });
    const line = LINES[event.event]?.(one, event);
    if (line) this.note(line.text, line.tone);
    this.changed();
  }

  /** Compares the times at which the clients relied on the lock. */
  #judge() {
    const failed = this.contenders.find(({ state }) => state === "failed");
    if (failed) return { isKept: false, sentence: `${failed.name} failed: ${failed.failure}` };
    const held = this.served;
    const isRising = held.slice(1).every((later, index) => held[index].token < later.token);
    const late = held.slice(1).flatMap((later, index) => {
      const ms = held[index].hold.to - later.hold.from;
      return ms > 0 ? [`${held[index].name} noticed ${secondsText(ms)} after ${later.name} had the lock`] : [];
    });
    const turns = late.length === 0 ? "never two at once" : late.join("; ");
    const isBroken = hasOverwritten(this.#writes, this.outages);
    const writes = isBroken ? "an older token has overwritten a newer one" : "no older token has overwritten a newer one";
    const isKept = isRising && !isBroken;
    return { isKept, sentence: `${held.length} clients held the lock: ${turns}; ${writes}.` };
  }
}

/** The lines of the log: what a client noticed. */
const LINES = {
  held: ({ name, token }) => ({ text: `${name} holds the lock. Token ${tokenText(token)}.`, tone: "good" }),
  unanswered: ({ name }) => ({ text: `The gateway did what ${name} requested, and the answer is lost.`, tone: "bad" }),
  repeated: ({ name }, { afterMs }) => ({ text: `${name} noticed after ${secondsText(afterMs)}, and repeats the request.`, tone: "plain" }),
  unrenewed: ({ name }, { code }) => ({ text: `${name} could not renew its lease: ${code}.`, tone: "bad" }),
  frozen: ({ name }) => ({ text: `${name} is frozen and notices nothing.`, tone: "bad" }),
  resumed: ({ name }) => ({ text: `${name} runs again.`, tone: "plain" }),
  lost: ({ name }, { reason }) => ({ text: `${name} notices that its lease is lost: ${reason}.`, tone: "bad" }),
  late: ({ name }, { accepted }) =>
    accepted
      ? { text: `${name} writes with its old token. Accepted: no newer one was written.`, tone: "plain" }
      : { text: `${name} writes with its old token. Refused.`, tone: "good" },
  released: ({ name }) => ({ text: `${name} released the lock.`, tone: "plain" }),
  error: ({ name, failure }) => ({ text: `${name} failed: ${failure}`, tone: "bad" }),
};
