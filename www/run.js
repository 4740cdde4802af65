/** One run: contenders for one lock, what the user does to them, and what follows from it. No drawing here. */

import { Contender } from "./contender.js";

export const HOLD_MS = 4_000;
export const LEASE_MS = 3_000;

/** How often Redis is asked for the rest of a dead holder's lease. */
const LOOK_MS = 400;

/** Fires `note` (with `text` and `tone`) for each line of the log, and `change` after each change. */
export class Run extends EventTarget {
  name = randomName();
  /** The newest token that the guarded store has seen. */
  newestWritten = 0;
  started = false;
  /** The moment when the last contender was done. */
  endedAt = null;
  /** The Worker's clock minus ours. Each event bounds it from below; the quickest one is the closest. */
  #clock = null;

  constructor(count) {
    super();
    this.contenders = Array.from({ length: count }, (_, index) => new Contender(index + 1));
  }

  /** Now, on the Worker's clock. */
  now() {
    return Date.now() + (this.#clock ?? 0);
  }

  /** When the first contender began to wait, or null. */
  get startedAt() {
    const starts = this.contenders.flatMap(({ waitFrom }) => waitFrom ?? []);
    return starts.length > 0 ? Math.min(...starts) : null;
  }

  get holder() {
    return this.contenders.find(({ state }) => state === "holding" || state === "killed") ?? null;
  }

  get newestToken() {
    return Math.max(0, ...this.contenders.map(({ token }) => token ?? 0));
  }

  /** Lets all contenders live at once, to the end of the last. */
  async start() {
    this.started = true;
    this.#note(`${this.contenders.length} Workers ask for the same lock.`);
    const settings = { run: this.name, holdMs: HOLD_MS, leaseMs: LEASE_MS };
    await Promise.all(this.contenders.map((one) => one.live(settings, (event) => this.#take(one, event))));
    await Promise.all(this.contenders.map((one) => one.death));
    this.endedAt = this.now();
    this.#conclude();
    this.#changed();
  }

  /** Kills a holder, and watches its lease run out. */
  kill(one) {
    if (one.state !== "holding") return;
    one.kill(this.now());
    this.#note(`You killed ${one.name}. Nobody releases its lock: the lease has to run out.`, "bad");
    one.death = this.#watch(one);
    this.#changed();
  }

  /** Whether a write of this dead holder would show something. */
  canWriteLate(one) {
    if (!one.wasKilled || one.lateWrite !== null) return false;
    return this.newestWritten > one.token || (this.endedAt !== null && one.state === "expired");
  }

  /** Lets a dead holder write with its old token, as if it had only been frozen. */
  async writeLate(one) {
    if (!this.canWriteLate(one)) return;
    const query = new URLSearchParams({ run: this.name, token: one.token, value: `worker-${one.number}` });
    try {
      const { accepted, newest } = await ask(`/api/write?${query}`, { method: "POST" });
      one.lateWrite = { at: this.now(), accepted, newest };
      const said = `${one.name} came back from the dead and wrote with token ${tokenText(one.token)}.`;
      if (accepted) this.#note(`${said} Accepted: nobody newer has written.`);
      else this.#note(`${said} Refused: the store has seen ${tokenText(newest)}.`, "good");
    } catch (error) {
      this.#note(`The write did not get through: ${error.message}`, "bad");
    }
    this.#changed();
  }

  #take(one, event) {
    if (event.at !== undefined) this.#clock = Math.max(this.#clock ?? -Infinity, event.at - Date.now());
    // What failed on our side has no moment of the Worker's.
    one.take({ at: this.now(), ...event });
    switch (event.event) {
      case "held":
        this.#noteGrant(one);
        break;
      case "wrote":
        this.newestWritten = Math.max(this.newestWritten, event.newest);
        break;
      case "released":
        this.#note(`${one.name} released the lock.`);
        break;
      case "lost":
        this.#note(`${one.name} lost its lease and stopped.`, "bad");
        break;
      case "error":
        this.#note(`${one.name} failed: ${one.failure}`, "bad");
        break;
    }
    this.#changed();
  }

  #noteGrant(one) {
    const before = this.contenders.filter(({ token }) => token !== null && token < one.token);
    const last = before.sort((a, b) => b.token - a.token)[0];
    const token = `Token ${tokenText(one.token)}.`;
    if (last?.state === "killed") this.#expire(last);
    if (!last?.wasKilled) return this.#note(`${one.name} holds the lock. ${token}`, "good");
    const seconds = ((one.heldFrom - last.killedAt) / 1000).toFixed(1);
    this.#note(`${one.name} took over from the dead ${last.name}, ${seconds} s after the kill. ${token}`, "good");
  }

  /** Asks Redis for the rest of a dead holder's lease until it is gone. */
  async #watch(one) {
    while (one.state === "killed") {
      const asked = this.now();
      const lock = await ask(`/api/state?run=${this.name}`).catch(() => null);
      const isGone = lock === null ? this.now() >= one.leaseEnd : !lock.locked || lock.lastToken !== one.token;
      if (one.state !== "killed") return;
      if (isGone && asked < one.leaseEnd - LOOK_MS) {
        // Gone before its time: the release was already on its way when the connection was cut.
        one.state = "released";
        this.#note(`${one.name} had released just before.`);
      } else if (isGone) {
        this.#expire(one);
      } else {
        // Counted from the asking, so that the lease never looks longer than it is.
        if (lock !== null) one.leaseEnd = asked + lock.remainingMs;
        await new Promise((done) => setTimeout(done, Math.min(LOOK_MS, Math.max(20, one.leaseEnd - this.now()))));
      }
      this.#changed();
    }
  }

  #expire(one) {
    one.state = "expired";
    this.#note(`The lease of ${one.name} ran out.`);
  }

  /** Says what this run has shown, read from what was seen and not from what should be. */
  #conclude() {
    const held = this.contenders.filter(({ heldFrom }) => heldFrom !== null).sort((a, b) => a.heldFrom - b.heldFrom);
    const pairs = held.slice(1).map((one, index) => [held[index], one]);
    const isExclusive = pairs.every(([earlier, later]) => earlier.holdEnd <= later.heldFrom);
    const isRising = pairs.every(([earlier, later]) => earlier.token < later.token);
    const exclusive = isExclusive ? "never two holders at once" : "two holders at once";
    const rising = isRising ? "each token higher than the one before" : "a token that did not rise";
    this.#note(`Over: ${held.length} holds, ${exclusive}, ${rising}.`, isExclusive && isRising ? "good" : "bad");
  }

  #note(text, tone = "plain") {
    const at = this.startedAt === null ? 0 : this.now() - this.startedAt;
    this.dispatchEvent(new CustomEvent("note", { detail: { at: Math.max(0, at), text, tone } }));
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** A token in groups of three digits. */
export function tokenText(token) {
  return String(token).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

async function ask(address, options) {
  const response = await fetch(address, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
