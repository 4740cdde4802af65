/**
 * One contender, as the page knows it: the stream of its life, and what has become of it. No
 * drawing here.
 */

/**
 * States: `ready`, `waiting`, `holding`, `released`; `killed` (its lease still runs), `expired`
 * (killed, and the lease ran out); `lost` (the lease ended under a living holder), `left` (it gave
 * up waiting), `failed`.
 */
export class Contender {
  state = "ready";
  /** All moments are milliseconds of the Worker's clock. */
  waitFrom = null;
  /**
   * What it held, one after the other: `from`, `to` (null as long as it holds it) and `as`, which
   * is `alone` or `shared`.
   */
  holds = [];
  leaseEnd = null;
  renewals = [];
  killedAt = null;
  /** Resolves when a killed one's lease has run out. */
  death = null;
  token = null;
  /** Its place in the queue, from 1, and when it was there. */
  queued = null;
  /** What was left to count when it had counted, and when. */
  counted = null;
  /** The outcome of the write after its death: `{ at, accepted, newest }`. */
  lateWrite = null;
  failure = null;
  /** When it was over without a release. */
  endedAt = null;
  #query;
  #connection = new AbortController();

  constructor(number, { name, role, query }) {
    this.number = number;
    this.name = name;
    this.role = role;
    this.#query = query;
  }

  get isOver() {
    return !["ready", "waiting", "holding", "killed"].includes(this.state);
  }

  get wasKilled() {
    return this.state === "killed" || this.state === "expired";
  }

  /** What it holds or held last, or null. */
  get hold() {
    return this.holds.at(-1) ?? null;
  }

  get isInside() {
    return this.state === "holding" && this.hold.to === null;
  }

  /** When its right to the lock ended, or null as long as it has it. */
  get holdEnd() {
    return this.wasKilled ? this.leaseEnd : this.hold.to;
  }

  /**
   * Asks the Worker and hands on each event of the answer, until the stream ends or the contender
   * is killed.
   */
  async live(onEvent) {
    try {
      const response = await fetch(`/api/contend?${this.#query}`, { method: "POST", signal: this.#connection.signal });
      if (!response.ok) throw new Error((await response.json()).error.message);
      for await (const event of lines(response.body)) {
        if (this.#connection.signal.aborted) return;
        onEvent(event);
      }
      if (!this.isOver) throw new Error("The Worker stopped without a word.");
    } catch (error) {
      if (this.#connection.signal.aborted) return;
      onEvent({ event: "error", message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Cuts the connection. The Worker stops where it stands. */
  kill(now) {
    this.#connection.abort();
    this.state = "killed";
    this.killedAt = now;
    this.#stop(now);
  }

  /** Takes one event of the Worker into account. */
  take({ event, at, ...details }) {
    switch (event) {
      case "waiting":
        this.state = "waiting";
        this.waitFrom = at;
        break;
      case "queued":
        this.queued = { at, place: details.place };
        break;
      case "held":
        this.#stop(at);
        this.state = "holding";
        this.holds.push({ from: at, to: null, as: details.as });
        this.token = details.token ?? null;
        this.leaseEnd = at + details.leaseLeftMs;
        break;
      case "renewed":
        this.renewals.push(at);
        this.leaseEnd = at + details.leaseLeftMs;
        break;
      case "releasing":
        this.#stop(at);
        break;
      case "counted":
        this.counted = { at, left: details.left };
        break;
      case "released":
        this.state = "released";
        break;
      case "left":
      case "lost":
        this.state = event;
        this.endedAt = at;
        this.#stop(at);
        break;
      case "error":
        this.state = "failed";
        this.endedAt = at;
        this.#stop(at);
        this.failure = details.message;
        break;
    }
  }

  #stop(at) {
    if (this.hold) this.hold.to ??= at;
  }
}

/** The JSON lines of a stream. Empty lines only show that the connection is alive. */
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const line of parts) if (line !== "") yield JSON.parse(line);
  }
}
