/** The event stream of a request, which also detects that the client has disconnected. */

/**
 * The interval of empty lines in milliseconds: some paths report a lost connection only when data
 * is sent.
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
    // Which of the two comes first depends on the place where the connection was cut.
    requestSignal.addEventListener("abort", leave, { once: true });
    this.#writer.closed.catch(leave);
    if (requestSignal.aborted) leave();
  }

  /** Aborts when the client has disconnected. */
  get left() {
    return this.#left.signal;
  }

  /**
   * Sends an event. It does not wait for the reader: a slow reader must not slow down the holder.
   */
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

/** Resolves after `ms` milliseconds, or when one of the signals aborts. */
export function pause(ms, signals) {
  const over = AbortSignal.any(signals);
  return new Promise((done) => {
    if (over.aborted) return done();
    const timer = setTimeout(done, Math.max(0, ms));
    over.addEventListener("abort", () => done(clearTimeout(timer)), { once: true });
  });
}
