/** One run: contenders for one object, and the conclusions. Nothing here draws. */

import { fetchJson } from "./request.js";
import { Contender } from "./contender.js";
import { requestsOf } from "./kinds.js";
import { labelsOf } from "./labels.js";

/** Long enough that no hold of a run needs a renewal. */
const LEASE_MS = 10_000;
const HOLD_MS = 2_000;

/**
 * Fires `note` (with `text` and `tone`) for each line of the log, and `change` after each change.
 */
export class Run extends EventTarget {
  name = randomName();
  started = false;
  /** The time at which the last contender ended. */
  endedAt = null;
  /** The verdict of Redis: `isKept` and a `sentence`; null until it has arrived. */
  verdict = null;
  /**
   * The Worker's clock minus the page's. Each event is a lower bound, and the largest is the
   * closest.
   */
  #clock = null;

  constructor(kind, { count, holdMs = HOLD_MS, leaseMs = LEASE_MS } = {}) {
    super();
    this.kind = kind;
    this.labels = labelsOf(kind);
    const requests = requestsOf(kind, { run: this.name, holdMs, leaseMs, count });
    this.contenders = requests.map((request, index) => new Contender(index + 1, request));
  }

  /** Returns the present time on the Worker's clock. */
  now() {
    return Date.now() + (this.#clock ?? 0);
  }

  /** The time at which the first contender started, or null. */
  get startedAt() {
    const starts = this.contenders.flatMap(({ waitFrom, hold }) => waitFrom ?? hold?.from ?? []);
    return starts.length > 0 ? Math.min(...starts) : null;
  }

  /** The contenders that hold something now. */
  get inside() {
    return this.contenders.filter(({ isInside }) => isInside);
  }

  /** The contenders that have held something, in the order of their grants. */
  get served() {
    return this.contenders.filter(({ hold }) => hold !== null).sort((a, b) => a.holds[0].from - b.holds[0].from);
  }

  /** The time at which the latch's count reached 0, or null. */
  get openedAt() {
    return this.contenders.find(({ counted }) => counted?.left === 0)?.counted.at ?? null;
  }

  /** Runs all contenders at once, until the last has ended, and requests the verdict of Redis. */
  async start() {
    this.started = true;
    this.note(this.labels.start(this));
    await Promise.all(this.contenders.map((one) => one.run((event) => this.#onEvent(one, event))));
    await Promise.all(this.contenders.map((one) => one.leaseExpiry));
    this.endedAt = this.now();
    this.conclude();
    await this.#fetchVerdict();
    this.changed();
  }

  /**
   * The action that is possible on a contender now: `kind`, `text`, `spoken`, `isReady` and
   * `act()`; null for none.
   */
  actionOn() {
    return null;
  }

  /** Writes the label of an event to the log. */
  logEvent(one, event) {
    const text = this.labels[event]?.(one, this);
    if (text) this.note(text, event === "held" ? "good" : "plain");
  }

  /** Ends what the run has started, when another run replaces it. */
  dispose() {}

  /** Writes the conclusion of the run to the log. */
  conclude() {}

  note(text, tone = "plain") {
    const at = this.startedAt === null ? 0 : this.now() - this.startedAt;
    this.dispatchEvent(new CustomEvent("note", { detail: { at: Math.max(0, at), text, tone } }));
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  #onEvent(one, event) {
    if (event.at !== undefined) this.#clock = Math.max(this.#clock ?? -Infinity, event.at - Date.now());
    // A failure on the page's side has no time of the Worker's clock.
    one.apply({ at: this.now(), ...event });
    if (event.event === "lost") this.note(`${one.name} lost its lease and stopped.`, "bad");
    else if (event.event === "error") this.note(`${one.name} failed: ${one.failure}`, "bad");
    else this.logEvent(one, event.event, event);
    this.changed();
  }

  async #fetchVerdict() {
    const failed = this.contenders.filter(({ state }) => state === "failed");
    try {
      this.verdict = await fetchJson(`/api/verdict?${new URLSearchParams({ kind: this.kind, run: this.name })}`);
    } catch (error) {
      this.verdict = { isKept: false, sentence: `Redis' record could not be read: ${error.message}` };
    }
    if (failed.length === 0) return;
    const sentence = `${failed.length} of ${this.contenders.length} failed: ${failed[0].failure} ${this.verdict.sentence}`;
    this.verdict = { isKept: false, sentence };
  }
}

function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
