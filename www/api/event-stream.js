/** The event stream of a request, which also detects that the client has disconnected. */

/**
 * The interval of empty lines in milliseconds: some paths report a lost connection only when data
 * is sent.
 */
const KEEP_ALIVE_MS = 100;

/** A stream of events, one line of JSON each. */
export class EventStream {
  readable;
  #writer;
  #disconnected = new AbortController();
  #encoder = new TextEncoder();
  #keepAlive = setInterval(() => this.#write("\n"), KEEP_ALIVE_MS);

  constructor(requestSignal) {
    const { readable, writable } = new TransformStream();
    this.readable = readable;
    this.#writer = writable.getWriter();
    const onDisconnect = () => {
      clearInterval(this.#keepAlive);
      this.#disconnected.abort(new DOMException("The client has disconnected.", "AbortError"));
    };
    // Which of the two comes first depends on the place where the connection was cut.
    requestSignal.addEventListener("abort", onDisconnect, { once: true });
    this.#writer.closed.catch(onDisconnect);
    if (requestSignal.aborted) onDisconnect();
  }

  /** Aborts when the client has disconnected. */
  get disconnected() {
    return this.#disconnected.signal;
  }

  /**
   * Sends an event. It does not wait for the reader: a slow reader must not slow down the holder.
   */
  send(event, details = {}) {
    this.#write(JSON.stringify({ event, at: Date.now(), ...details }) + "\n");
  }

  #write(line) {
    this.#writer.write(this.#encoder.encode(line)).catch(() => {});
  }

  end() {
    clearInterval(this.#keepAlive);
    this.#writer.close().catch(() => {});
  }
}

/** Resolves after `ms` milliseconds, or when one of the signals aborts. */
export function pause(ms, signals) {
  const aborted = AbortSignal.any(signals);
  return new Promise((done) => {
    if (aborted.aborted) return done();
    const timer = setTimeout(done, Math.max(0, ms));
    aborted.addEventListener("abort", () => done(clearTimeout(timer)), { once: true });
  });
}
