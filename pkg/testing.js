// `edgelatch/testing`: a gateway in memory for unit tests. The gateway itself is WebAssembly (the
// crate `edgelatch-testing`); this file is its transport. It imports no other entry.
import { decode } from "./decode.js";
import { order, size, text } from "./wasm/testing-inline.js";
import { TestGateway, initSync } from "./wasm/testing.js";

const KINDS = ["lock", "fairLock", "fairRead", "fairWrite", "read", "write", "semaphore", "permitExpirableSemaphore"];
const DEFAULT_LEASE_MS = 30_000;
const INT_MAX = 2 ** 31 - 1;
/** The headers of every response: clients read none that a gateway in memory would send. */
const NO_HEADERS = { get: () => null };

let isStarted = false;
/** The number of gateways so far. Each has its own host, as the gateways of a redLock need. */
let count = 0;

/** Starts the WebAssembly module, at the first gateway. */
function start() {
  if (!isStarted) initSync({ module: decode(text, order, size) });
  isStarted = true;
}

const invalid = (option, accepted) => new TypeError(`\`${option}\` is not acceptable: expected ${accepted}`);

function whole(value, option, min, max) {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(option, `a whole number from ${min} to ${max}`);
}

function textOf(value, option) {
  if (typeof value === "string") return value;
  throw invalid(option, "a string");
}

/** Creates the error of a `fetch` without a response, with Node's code for the cause. */
function networkError(message, code) {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
}

const NOT_CONNECTED = () => networkError("the test gateway is down: connection refused", "ECONNREFUSED");
const BROKEN = () => networkError("the test gateway lost the response", "ECONNRESET");

/** Returns a promise that is rejected when the signal aborts; it never resolves. */
function aborted(signal) {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    else signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The body of a response whose bytes are there. */
function bodyOf(text) {
  let chunks = [new TextEncoder().encode(text)];
  return {
    getReader: () => ({
      read: async () => (chunks.length ? { done: false, value: chunks.pop() } : { done: true, value: undefined }),
      cancel: async () => void (chunks = []),
    }),
  };
}

/** Creates a gateway in memory. */
export function createTestGateway(options = {}) {
  const { now = () => Date.now(), ...rest } = options;
  if (typeof now !== "function") throw invalid("now", "a function that returns milliseconds since 1970");
  for (const name of Object.keys(rest)) throw invalid(name, "no such option: `now` is the only one");
  start();
  return new Gateway(now);
}

class Gateway {
  #memory = new TestGateway(`gateway-${++count}.test`);
  #now;
  #delayMs = 0;
  /** The functions that pass on new bytes of the streams that are being read. */
  #readers = new Set();

  constructor(now) {
    this.#now = now;
    [this.url, this.token] = this.#memory.address().split(" ");
    this.fetch = (url, init) => this.#fetch(String(url), init);
  }

  async #fetch(url, { headers, body = "", signal } = {}) {
    if (signal?.aborted) throw signal.reason;
    const { authorization, accept } = headers ?? {};
    if (accept === "text/event-stream") return this.#open(url, authorization, String(body), signal);
    const result = this.#change((memory) => memory.send(url, authorization, String(body), this.#now()));
    if (result === "down") throw NOT_CONNECTED();
    if (this.#delayMs > 0) {
      const delayMs = this.#delayMs;
      await Promise.race([new Promise((resolve) => setTimeout(resolve, delayMs)), aborted(signal)]);
    }
    if (result === "lost") throw BROKEN();
    return this.#response(Number.parseInt(result, 10), bodyOf(result.slice(result.indexOf(" ") + 1)));
  }

  #open(url, authorization, body, signal) {
    const result = this.#change((memory) => memory.open(url, authorization, body));
    if (result === "down") throw NOT_CONNECTED();
    const [status, stream] = result.split(" ").map(Number);
    const close = () => this.#change((memory) => memory.close(stream));
    // Its listener precedes that of `close`, which ends a pending read too.
    const isAborted = aborted(signal);
    isAborted.catch(() => {});
    signal?.addEventListener("abort", close, { once: true });
    const getReader = () => ({ read: () => Promise.race([this.#read(stream), isAborted]), cancel: async () => close() });
    return this.#response(status, { getReader });
  }

  #response(status, body) {
    return { status, ok: status === 200, headers: NO_HEADERS, body };
  }

  /** Resolves with the next bytes of a stream. */
  #read(stream) {
    return new Promise((resolve) => {
      const reader = () => {
        const text = this.#memory.read(stream);
        if (text === undefined) return;
        this.#readers.delete(reader);
        resolve(text === "" ? { done: true, value: undefined } : { done: false, value: new TextEncoder().encode(text) });
      };
      this.#readers.add(reader);
      reader();
    });
  }

  /** Changes the gateway, then passes on new bytes of its streams. */
  #change(change) {
    const result = change(this.#memory);
    for (const reader of [...this.#readers]) reader();
    return result;
  }

  loseReplies(requests = 1) {
    this.#change((memory) => memory.loseReplies(whole(requests, "requests", 0, INT_MAX)));
  }

  refuse(requests = 1) {
    this.#change((memory) => memory.refuse(whole(requests, "requests", 0, INT_MAX)));
  }

  delayReplies(ms) {
    this.#delayMs = whole(ms, "ms", 0, INT_MAX);
  }

  setDown(isDown) {
    if (typeof isDown !== "boolean") throw invalid("isDown", "true or false");
    this.#change((memory) => memory.setDown(isDown));
  }

  expire(name) {
    return this.#change((memory) => memory.expire(textOf(name, "name"), this.#now()));
  }

  hold(name, { kind = "lock", leaseMs = DEFAULT_LEASE_MS, permits = 1 } = {}) {
    if (!KINDS.includes(kind)) throw invalid("kind", `one of ${KINDS.join(", ")}`);
    const [lease, count] = [whole(leaseMs, "leaseMs", 100, 86_400_000), whole(permits, "permits", 1, INT_MAX)];
    let hold;
    try {
      hold = this.#change((memory) => memory.hold(textOf(name, "name"), kind, lease, count, this.#now()));
    } catch (message) {
      throw typeof message === "string" ? new Error(message) : message;
    }
    let isReleased = false;
    const release = () => {
      const existed = !isReleased && this.#change((memory) => memory.release(hold, this.#now()));
      isReleased = true;
      return existed;
    };
    return { token: hold.token, release };
  }

  held() {
    const rows = JSON.parse(this.#memory.held(this.#now()));
    return rows.map(([name, kind, holds, remainingMs]) => ({ name, kind, holds, remainingMs }));
  }
}
