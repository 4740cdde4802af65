/** One contender, as the page knows it: the stream of its life, and what has become of it. No drawing here. */

/**
 * States: `ready`, `waiting`, `holding`, `released`; `killed` (its lease still runs), `expired` (killed, and the lease
 * ran out); `lost` (the lease ended under a living holder), `failed`.
 */
export class Contender {
  state = "ready";
  /** All moments are milliseconds of the Worker's clock. */
  waitFrom = null;
  heldFrom = null;
  /** When it stopped working under the lock, by its own doing or by a kill. */
  heldTo = null;
  leaseEnd = null;
  renewals = [];
  killedAt = null;
  /** Resolves when a killed one's lease has run out. */
  death = null;
  token = null;
  /** The outcome of the write after its death: `{ at, accepted, newest }`. */
  lateWrite = null;
  failure = null;
  failedAt = null;
  #connection = new AbortController();

  constructor(number) {
    this.number = number;
    this.name = `Worker ${number}`;
  }

  get isOver() {
    return !["ready", "waiting", "holding", "killed"].includes(this.state);
  }

  get wasKilled() {
    return this.state === "killed" || this.state === "expired";
  }

  /** When its right to the lock ended, or null as long as it has it. */
  get holdEnd() {
    return this.wasKilled ? this.leaseEnd : this.heldTo;
  }

  /** Asks the Worker and hands on each event of the answer, until the stream ends or the contender is killed. */
  async live({ run, holdMs, leaseMs }, onEvent) {
    const query = new URLSearchParams({ id: `${this.number}`, run, holdMs, leaseMs });
    try {
      const response = await fetch(`/api/contend?${query}`, { method: "POST", signal: this.#connection.signal });
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
    this.killedAt = this.heldTo = now;
  }

  /** Takes one event of the Worker into account. */
  take({ event, at, ...details }) {
    switch (event) {
      case "waiting":
        this.state = "waiting";
        this.waitFrom = at;
        break;
      case "held":
        this.state = "holding";
        this.heldFrom = at;
        this.token = details.token;
        this.leaseEnd = at + details.leaseLeftMs;
        break;
      case "renewed":
        this.renewals.push(at);
        this.leaseEnd = at + details.leaseLeftMs;
        break;
      case "releasing":
        this.heldTo = at;
        break;
      case "released":
        this.state = "released";
        break;
      case "lost":
        this.state = "lost";
        this.heldTo ??= at;
        break;
      case "error":
        this.state = "failed";
        this.failedAt = at;
        if (this.heldFrom !== null) this.heldTo ??= at;
        this.failure = details.message;
        break;
    }
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
