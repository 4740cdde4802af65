/** A run of the lock, in which the user can kill holders, and a killed holder can write late. */

import { fetchJson } from "./request.js";
import { Gateway } from "./gateway.js";
import { Run } from "./run.js";
import { tokenText } from "./labels.js";

const HOLD_MS = 4_000;
/**
 * Shorter than the hold, so that a lease is renewed, and short enough to expire soon after its
 * holder was killed.
 */
const LEASE_MS = 3_000;

/**
 * The interval in milliseconds at which the page reads the rest of a dead holder's lease from
 * Redis.
 */
const POLL_MS = 400;

export class LockRun extends Run {
  /** The newest token that the guarded store has seen. */
  newestWritten = 0;
  #gateway = new Gateway(this.name);

  constructor(count) {
    super("lock", { count, holdMs: HOLD_MS, leaseMs: LEASE_MS });
  }

  get holder() {
    return this.contenders.find(({ state }) => state === "holding" || state === "killed") ?? null;
  }

  get newestToken() {
    return Math.max(0, ...this.contenders.map(({ token }) => token ?? 0));
  }

  /** A holder can be killed; a dead one can write once, when the outcome shows something. */
  actionOn(one) {
    if (one.isInside) return { kind: "kill", text: "Kill", spoken: `Kill ${one.name}`, isReady: true, act: () => this.#kill(one) };
    if (!one.wasKilled) return null;
    if (one.lateWrite) return { kind: "write", text: one.lateWrite.accepted ? "Accepted" : "Refused", isReady: false };
    const spoken = `Let the dead ${one.name} write`;
    return { kind: "write", text: "Let it write", spoken, isReady: this.#canWriteLate(one), act: () => this.#writeLate(one) };
  }

  logEvent(one, event, details) {
    if (event === "held") this.#noteGrant(one);
    else if (event === "wrote") this.newestWritten = Math.max(this.newestWritten, details.newest);
    else super.logEvent(one, event);
  }

  /** Logs the observed result, not the expected one. */
  conclude() {
    const held = this.served;
    const pairs = held.slice(1).map((one, index) => [held[index], one]);
    const isExclusive = pairs.every(([earlier, later]) => earlier.holdEnd <= later.hold.from);
    const isRising = pairs.every(([earlier, later]) => earlier.token < later.token);
    const exclusive = isExclusive ? "never two holders at once" : "two holders at once";
    const rising = isRising ? "each token higher than the one before" : "a token that did not rise";
    this.note(`Over: ${held.length} holds, ${exclusive}, ${rising}.`, isExclusive && isRising ? "good" : "bad");
  }

  /** Cuts a holder's connection, and watches its lease expire. */
  #kill(one) {
    one.kill(this.now());
    this.note(`You killed ${one.name}. Its lock is not released: the lease has to expire.`, "bad");
    one.leaseExpiry = this.#watch(one);
    this.changed();
  }

  #canWriteLate(one) {
    return this.newestWritten > one.token || (this.endedAt !== null && one.state === "expired");
  }

  /** Has a dead holder write with its old token, as if it had only been frozen. */
  async #writeLate(one) {
    const query = new URLSearchParams({ run: this.name, token: one.token, value: `worker-${one.number}` });
    try {
      const { accepted, newest } = await fetchJson(`/api/write?${query}`, { method: "POST" });
      one.lateWrite = { at: this.now(), accepted, newest };
      const text = `${one.name} resumed and wrote with its old token ${tokenText(one.token)}.`;
      if (accepted) this.note(`${text} Accepted: no newer token was written.`);
      else this.note(`${text} Refused: the store has seen ${tokenText(newest)}.`, "good");
    } catch (error) {
      this.note(`The write failed: ${error.message}`, "bad");
    }
    this.changed();
  }

  #noteGrant(one) {
    const before = this.contenders.filter(({ token }) => token !== null && token < one.token);
    const last = before.sort((a, b) => b.token - a.token)[0];
    const token = `Token ${tokenText(one.token)}.`;
    if (last?.state === "killed") this.#expire(last);
    if (!last?.wasKilled) return this.note(`${one.name} holds the lock. ${token}`, "good");
    const seconds = ((one.hold.from - last.killedAt) / 1000).toFixed(1);
    this.note(`${one.name} took over from the dead ${last.name}, ${seconds} s after the kill. ${token}`, "good");
  }

  /** Reads the rest of a dead holder's lease from Redis until the lease is gone. */
  async #watch(one) {
    while (one.state === "killed") {
      const sentAt = this.now();
      const lock = await this.#gateway.inspect().catch(() => null);
      const isGone = lock === null ? this.now() >= one.leaseEnd : !lock.locked || lock.lastToken !== one.token;
      if (one.state !== "killed") return;
      if (isGone && sentAt < one.leaseEnd - POLL_MS) {
        // Gone before its time: the release was in flight when the connection was cut.
        one.state = "released";
        this.note(`${one.name} had released just before.`);
      } else if (isGone) {
        this.#expire(one);
      } else {
        // Counted from the sending of the request, so that the page never shows the lease longer
        // than it is.
        if (lock !== null) one.leaseEnd = sentAt + lock.remainingMs;
        await new Promise((done) => setTimeout(done, Math.min(POLL_MS, Math.max(20, one.leaseEnd - this.now()))));
      }
      this.changed();
    }
  }

  #expire(one) {
    one.state = "expired";
    this.note(`The lease of ${one.name} expired.`);
  }
}
