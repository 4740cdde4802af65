// Timers, entropy and requests of a JavaScript runtime. Each function that starts an operation
// returns a `Pending`, whose `done` says whether the operation has ended; `wake` is called at its
// end.

// The failures of a request. src/transport/host_fetch.rs reads these numbers.
const NOT_SENT = 0;
const BROKEN = 1;
const REDIRECTED = 2;
const GARBLED = 3;
const TOO_LARGE = 4;

/** The largest number of bytes of a body. src/transport/host_fetch.rs compares it with its own. */
const BODY_MAX = 65536;

// The kinds of runtimes. src/transport/host_fetch.rs reads these numbers.
const PROGRAM = 0;
const WORKER = 1;
const PAGE = 2;
const OLD_PAGE = 3;

/**
 * The number of streams that all pages of an origin may have open at one gateway. A browser has six
 * HTTP/1.1 connections for a host, and the page's other requests need some of them.
 */
const STREAM_SLOTS = 2;

/** The browser's own locks: later a page may put another `LockManager` in their place. */
const { locks } = globalThis.navigator ?? {};

export function runtime() {
  const { userAgent = "" } = globalThis.navigator ?? {};
  if (userAgent === "Cloudflare-Workers") return WORKER;
  // Workers of pages also have a location.
  if (!("location" in globalThis) || userAgent.startsWith("Deno")) return PROGRAM;
  return locks ? PAGE : OLD_PAGE;
}

/** Whether the runtime is a program that ends once nothing is pending. */
export const isProgram = runtime() === PROGRAM;
/** Whether I/O belongs to the request that began it. */
export const isWorker = runtime() === WORKER;

/**
 * Whether timers keep a program running. The npm package turns this off, since it keeps the program
 * running while calls are pending (pkg/api.js).
 */
let timersKeepRunning = true;

export function unrefTimers() {
  timersKeepRunning = false;
}

class Pending {
  done = false;
  #wake;

  constructor(wake) {
    this.#wake = wake;
  }

  end(result) {
    Object.assign(this, result).done = true;
    this.#wake?.();
  }

  /** Cancels the operation; its result is not reported. */
  cancel() {
    this.#wake = undefined;
    // A Worker's runtime throws if this runs outside of the request that created the operation.
    try {
      this.abort?.();
    } catch {}
  }
}

export function sleep(ms, wake) {
  const pending = new Pending(wake);
  try {
    const timer = setTimeout(() => pending.end(), ms);
    if (isProgram && !timersKeepRunning) timer.unref ? timer.unref() : globalThis.Deno?.unrefTimer(timer);
    pending.abort = () => clearTimeout(timer);
  } catch {}
  return pending;
}

/**
 * Waits for a signal to abort. A signal that cannot be read (in a Worker, one of another request)
 * counts as aborted, with the thrown value as the reason.
 */
export function onAbort(signal, wake) {
  try {
    return new AbortWatch(signal, wake);
  } catch (reason) {
    return { done: true, reason, cancel() {} };
  }
}

/** A class: an object with a getter and functions of its own takes 0.9 kB more for each waiter. */
class AbortWatch {
  #signal;
  #wake;
  /** A function, since the signals of some test environments accept no object. */
  #listener = () => this.#wake?.();

  constructor(signal, wake) {
    this.#signal = signal;
    this.#wake = wake;
    signal.addEventListener("abort", this.#listener);
  }

  get done() {
    try {
      if (!this.#signal.aborted) return false;
      this.reason = this.#signal.reason;
    } catch (thrown) {
      this.reason = thrown;
    }
    return true;
  }

  cancel() {
    this.#wake = undefined;
    // The signal may live for long, so the listener is removed.
    try {
      this.#signal.removeEventListener("abort", this.#listener);
    } catch {}
  }
}

/** Fills the bytes from a cryptographic source; returns false if there is none. */
export function fill(bytes) {
  try {
    crypto.getRandomValues(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * Sends one request with the given fetch function or the runtime's. It ends when the body is
 * complete, at most `BODY_MAX` bytes; with `accept`, which requests a stream, it ends with the
 * head of the response.
 */
export function send(fetch, url, authorization, type, token, accept, body, wake) {
  const pending = new Pending(wake);
  const headers = {};
  if (authorization !== undefined) headers.authorization = authorization;
  headers["content-type"] = type;
  if (token !== undefined) headers["upstash-sync-token"] = token;
  if (accept !== undefined) headers.accept = accept;
  exchange(pending, fetch, url, { method: "POST", headers, body, redirect: "manual" }, accept ? 0 : BODY_MAX).then((result) => {
    // A complete response leaves nothing to cancel.
    if (result.bytes) pending.abort = undefined;
    pending.end(result);
  });
  return pending;
}

/** Reads the next chunk of a body; at the end of the body the result has no bytes. */
export function read({ reader }, wake) {
  const pending = new Pending(wake);
  readChunk(reader, BODY_MAX).then((chunk) => pending.end(chunk));
  return pending;
}

async function exchange(pending, fetch, url, init, max) {
  const controller = new AbortController();
  // A stream's URL contains the lock's name, and some runtimes include the URL in their errors, so
  // a stream's error is not kept: see `redactNames`.
  const recordFailure = (error, failure) => {
    if (max && !controller.signal.aborted) networkErrors.set(new URL(url).host, error);
    return { failure };
  };
  const abortRequest = () => {
    const hasNoResult = !pending.done;
    controller.abort();
    if (max && hasNoResult) networkErrors.set(new URL(url).host, timeoutError());
  };
  let response;
  try {
    pending.abort = abortRequest;
    init.signal = controller.signal;
    const options = { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
    // Runtimes without these options throw at them, and do not need them.
    const known = globalThis.Request?.prototype ?? {};
    for (const option in options) if (option in known) init[option] = options[option];
    if (!max && runtime() >= PAGE && !(await acquireStreamSlot(new URL(url).host, controller.signal))) return { failure: NOT_SENT };
    response = fetch ? fetch(url, init) : globalThis.fetch(url, init);
  } catch (error) {
    // A fetch function that throws synchronously has sent nothing.
    return recordFailure(error, NOT_SENT);
  }
  try {
    response = await response;
  } catch (error) {
    return recordFailure(error, hasNotConnected(error) ? NOT_SENT : BROKEN);
  }
  if (networkErrors.size) networkErrors.delete(new URL(url).host);
  // The fetch function may be the caller's own, so each property of its response is checked.
  try {
    const status = Number.isInteger(response.status) ? response.status : 0;
    // A redirection that is not followed has its own status, or status 0 in browsers.
    if (status <= 0 || (status >= 300 && status < 400)) return { failure: REDIRECTED };
    const syncToken = response.headers.get("upstash-sync-token");
    const retryAfter = status < 400 ? undefined : retryAfterSeconds(response.headers);
    const reader = response.body?.getReader();
    pending.abort = () => {
      abortRequest();
      // Deno leaves a connection open if it is aborted at the moment when a chunk arrives, and a
      // caller's own fetch function may ignore the signal.
      reader?.cancel().catch(() => {});
    };
    if (controller.signal.aborted) pending.abort();
    const head = { status, token: typeof syncToken === "string" ? syncToken : undefined, retryAfter, reader };
    return max ? { ...head, ...(await readAll(reader, max, controller.signal)) } : head;
  } catch {
    return { failure: GARBLED };
  }
}

/**
 * The last error of a request to each host, until a request to it gets a response: the `cause` of
 * the package's errors.
 */
export const networkErrors = new Map();

const timeoutError = () => new DOMException("the gateway sent no response within the request timeout", "TimeoutError");

/**
 * Error codes of Node and Bun for a connection that was not established: no address, no listener,
 * or a certificate that is not accepted.
 */
const NOT_CONNECTED_CODE =
  /^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket|ENOTFOUND|EAI_\w+|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_\w+)$/;
/**
 * Messages for a connection that was not established: of Deno, of Node for ports that browsers
 * block too, and of Bun.
 */
const NOT_CONNECTED_MESSAGE = /client error \(Connect\)|^bad port$|ports? \d+ (is|are) blocked|TLS handshake failed/;

/**
 * Returns whether an error of `fetch` proves that the request was not sent. Errors of browsers
 * never do.
 */
function hasNotConnected(error) {
  try {
    const { code = "", syscall, message = "", errors } = error.cause ?? error;
    if (Array.isArray(errors) && errors.length > 0) return errors.every(hasNotConnected);
    return syscall === "connect" || NOT_CONNECTED_CODE.test(code) || NOT_CONNECTED_MESSAGE.test(message);
  } catch {
    return false;
  }
}

/**
 * Returns the seconds for which the gateway requests no further requests: `Retry-After` is a
 * number, or a time by the gateway's own clock.
 */
function retryAfterSeconds(headers) {
  const value = headers.get("retry-after");
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.parse(headers.get("date"))) / 1000;
  return seconds >= 0 ? Math.min(Math.ceil(seconds), 1e9) : undefined;
}

/**
 * Acquires one of the `STREAM_SLOTS` of the origin, if one is free, until the signal aborts: a
 * browser lock (`navigator.locks`), which all pages of an origin share.
 */
async function acquireStreamSlot(host, signal) {
  for (let number = 0; number < STREAM_SLOTS; number++) {
    const isFree = await new Promise((resolve, reject) => {
      const onLock = (lock) => {
        const isAcquired = lock && !signal.aborted;
        resolve(isAcquired);
        if (isAcquired) return new Promise((release) => signal.addEventListener("abort", release));
      };
      locks.request(`edgelatch stream ${number} of ${host}`, { ifAvailable: true }, onLock).catch(reject);
    });
    if (isFree) return true;
  }
  return false;
}

async function readAll(reader, max, signal) {
  let bytes = new Uint8Array(0);
  while (!signal.aborted) {
    const chunk = await readChunk(reader, max - bytes.length);
    if (!chunk.bytes) return chunk.failure === undefined ? { bytes } : chunk;
    bytes = bytes.length ? concat(bytes, chunk.bytes) : chunk.bytes;
  }
  return { failure: BROKEN };
}

export function concat(first, second) {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

/**
 * Joins texts to one, each behind its length in UTF-16 code units and a colon. src/js/options.rs
 * unpacks it.
 */
export const pack = (texts) => texts.map((text) => `${text.length}:${text}`).join("");

/**
 * Whether the value is a `Uint8Array`, also of another realm, such as that of a test environment.
 */
const isBytes = (value) => value instanceof Uint8Array || Object.prototype.toString.call(value) === "[object Uint8Array]";

async function readChunk(reader, max) {
  if (!reader) return {};
  try {
    const { done, value } = await reader.read();
    if (done) return {};
    if (!isBytes(value)) return { failure: BROKEN };
    // The length is checked before the chunk is copied: a chunk may have any length.
    return value.length > max ? { failure: TOO_LARGE } : { bytes: value };
  } catch {
    return { failure: BROKEN };
  }
}
