/** One contender on the page: its event stream and its state. Nothing here draws. */

/**
 * States: `ready`, `waiting`, `holding`, `released`; `killed` (its lease still runs), `expired`
 * (killed, and the lease has expired); `lost` (the lease ended while the holder lived), `left` (it
 * stopped waiting), `failed`.
 */
export class Contender {
  state = "ready";
  /** All times are milliseconds of the Worker's clock. */
  waitFrom = null;
  /**
   * Its holds in order: `from`, `to` (null while it lasts) and `as`, which is `alone` or `shared`.
   */
  holds = [];
  leaseEnd = null;
  renewals = [];
  killedAt = null;
  /** Resolves when the lease of a killed contender has expired. */
  leaseExpiry = null;
  token = null;
  /** Its place in the queue, from 1, and the time at which it joined. */
  queued = null;
  /** The count after its count-down, and the time. */
  counted = null;
  /** The outcome of the write after its death: `{ at, accepted, newest }`. */
  lateWrite = null;
  failure = null;
  /** The time at which it ended without a release. */
  endedAt = null;
  #query;
  #connection = new AbortController();

  constructor(number, { name, role, query }) {
    this.number = number;
    this.name = name;
    this.role = role;
    this.#query = query;
  }

  get hasEnded() {
    return !["ready", "waiting", "holding", "killed"].includes(this.state);
  }

  get wasKilled() {
    return this.state === "killed" || this.state === "expired";
  }

  /** The present or last hold, or null. */
  get hold() {
    return this.holds.at(-1) ?? null;
  }

  get isInside() {
    return this.state === "holding" && this.hold.to === null;
  }

  /** The time at which its right to the lock ended, or null while it lasts. */
  get holdEnd() {
    return this.wasKilled ? this.leaseEnd : this.hold.to;
  }

  /**
   * Sends the request and passes on each event of the response, until the stream ends or the
   * contender is killed.
   */
  async run(onEvent) {
    try {
      const response = await fetch(`/api/contend?${this.#query}`, { method: "POST", signal: this.#connection.signal });
      if (!response.ok) throw new Error((await response.json()).error.message);
      for await (const event of lines(response.body)) {
        if (this.#connection.signal.aborted) return;
        onEvent(event);
      }
      if (!this.hasEnded) throw new Error("The Worker closed the stream without a result.");
    } catch (error) {
      if (this.#connection.signal.aborted) return;
      onEvent({ event: "error", message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Cuts the connection. The Worker stops at once. */
  kill(now) {
    this.#connection.abort();
    this.state = "killed";
    this.killedAt = now;
    this.#stop(now);
  }

  /** Applies one event of the Worker. */
  apply({ event, at, ...details }) {
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

/** Yields the JSON lines of a stream. Empty lines only keep the connection alive. */
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffered = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (buffered + value).split("\n");
    buffered = parts.pop();
    for (const line of parts) if (line !== "") yield JSON.parse(line);
  }
}
