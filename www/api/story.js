/** What a request tells of itself while it lasts, and whether somebody still listens. */

/**
 * How often an empty line is sent: on some ways a lost connection is noticed only when something is
 * sent.
 */
const PULSE_MS = 100;

/** A stream of events, one line of JSON each. */
export class Story {
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

/** Lets a time pass, or less when one of the signals is aborted. */
export function pause(ms, signals) {
  const over = AbortSignal.any(signals);
  return new Promise((done) => {
    if (over.aborted) return done();
    const timer = setTimeout(done, Math.max(0, ms));
    over.addEventListener("abort", () => done(clearTimeout(timer)), { once: true });
  });
}
