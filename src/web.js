// Timers, entropy and requests of a JavaScript runtime. Each function that starts an operation
// returns a `Pending`, whose `over` says whether the operation has ended; `wake` is called at its
// end.

/** Failures of a request: indices in `FAILURES` in src/transport/host_fetch.rs. */
const [NOT_SENT, BROKEN, REDIRECTED, GARBLED, TOO_LARGE] = [0, 1, 2, 3, 4];

/** Kinds of runtimes: indices in `STREAMS` in src/transport/host_fetch.rs. */
const [PROGRAM, WORKER, PAGE, OLD_PAGE] = [0, 1, 2, 3];

/**
 * The number of streams that all pages of an origin may have open at one gateway. A browser has six
 * HTTP/1.1 connections for a host, and the page's other requests need some of them.
 */
const PLACES = 2;

export function runtime() {
  const { userAgent = "", locks } = globalThis.navigator ?? {};
  if (userAgent === "Cloudflare-Workers") return WORKER;
  // Workers of pages also have a location.
  if (!("location" in globalThis) || userAgent.startsWith("Deno")) return PROGRAM;
  return locks ? PAGE : OLD_PAGE;
}

/** Whether the runtime is a program that ends once nothing is pending. */
export const isProgram = runtime() === PROGRAM;

/**
 * Whether timers keep a program running. The npm package turns this off, since it keeps the program
 * running while calls are pending (pkg/api.js).
 */
let timersKeepRunning = true;

export function unrefTimers() {
  timersKeepRunning = false;
}

class Pending {
  over = false;
  #wake;

  constructor(wake) {
    this.#wake = wake;
  }

  end(result) {
    Object.assign(this, result).over = true;
    this.#wake?.();
  }

  /** Cancels the operation; its result is not reported. */
  quit() {
    this.#wake = undefined;
    // A Worker's runtime throws if this runs outside of the request that created the operation.
    try {
      this.giveUp?.();
    } catch {}
  }
}

export function sleep(ms, wake) {
  const pending = new Pending(wake);
  try {
    const timer = setTimeout(() => pending.end(), ms);
    if (isProgram && !timersKeepRunning) timer.unref ? timer.unref() : globalThis.Deno?.unrefTimer(timer);
    pending.giveUp = () => clearTimeout(timer);
  } catch {}
  return pending;
}

/**
 * Waits for a signal to abort. A signal that cannot be read (in a Worker, one of another request)
 * counts as aborted, with the thrown value as the reason.
 */
export function heed(signal, wake) {
  const heard = () => wake?.();
  const pending = {
    get over() {
      try {
        if (!signal.aborted) return false;
        this.reason = signal.reason;
      } catch (thrown) {
        this.reason = thrown;
      }
      return true;
    },
    quit() {
      wake = undefined;
      // The signal may live for long, so the listener is removed.
      try {
        signal.removeEventListener("abort", heard);
      } catch {}
    },
  };
  try {
    signal.addEventListener("abort", heard);
    return pending;
  } catch (reason) {
    return { over: true, reason, quit() {} };
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
 * complete, at most `most` bytes; with `accept`, which requests a stream, it ends with the head of
 * the response.
 */
export function send(fetch, url, authorization, type, token, accept, body, most, wake) {
  const pending = new Pending(wake);
  const headers = { authorization, "content-type": type, "upstash-sync-token": token, accept };
  for (const name in headers) if (headers[name] === undefined) delete headers[name];
  carry(pending, fetch, url, { method: "POST", headers, body, redirect: "manual" }, accept ? 0 : most).then((result) => {
    // A complete response leaves nothing to cancel.
    if (result.bytes) pending.giveUp = undefined;
    pending.end(result);
  });
  return pending;
}

/** Reads the next chunk of a body; at the end of the body the result has no bytes. */
export function read({ reader }, most, wake) {
  const pending = new Pending(wake);
  piece(reader, most).then((part) => pending.end(part));
  return pending;
}

async function carry(pending, fetch, url, init, most) {
  const abort = new AbortController();
  // A stream's URL contains the lock's name, and some runtimes include the URL in their errors, so
  // a stream's error is not kept: see `redactNames`.
  const failed = (error, failure) => {
    if (most && !abort.signal.aborted) networkErrors.set(new URL(url).host, error);
    return { failure };
  };
  const stop = () => {
    const hasNoResult = !pending.over;
    abort.abort();
    if (most && hasNoResult) networkErrors.set(new URL(url).host, timedOut());
  };
  let answer;
  try {
    pending.giveUp = stop;
    init.signal = abort.signal;
    const options = { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
    // Runtimes without these options throw at them, and do not need them.
    const known = globalThis.Request?.prototype ?? {};
    for (const option in options) if (option in known) init[option] = options[option];
    if (!most && runtime() >= PAGE && !(await hasPlace(new URL(url).host, abort.signal))) return { failure: NOT_SENT };
    answer = fetch ? fetch(url, init) : globalThis.fetch(url, init);
  } catch (error) {
    // A fetch function that throws synchronously has sent nothing.
    return failed(error, NOT_SENT);
  }
  try {
    answer = await answer;
  } catch (error) {
    return failed(error, hasNotConnected(error) ? NOT_SENT : BROKEN);
  }
  if (networkErrors.size) networkErrors.delete(new URL(url).host);
  // The fetch function may be the caller's own, so each property of its response is checked.
  try {
    const status = Number.isInteger(answer.status) ? answer.status : 0;
    // A redirection that is not followed has its own status, or status 0 in browsers.
    if (status <= 0 || (status >= 300 && status < 400)) return { failure: REDIRECTED };
    const told = answer.headers.get("upstash-sync-token");
    const rest = status < 400 ? undefined : restOf(answer.headers);
    const reader = answer.body?.getReader();
    pending.giveUp = () => {
      stop();
      // Deno leaves a connection open if it is aborted at the moment when a chunk arrives, and a
      // caller's own fetch function may ignore the signal.
      reader?.cancel().catch(() => {});
    };
    if (abort.signal.aborted) pending.giveUp();
    const head = { status, token: typeof told === "string" ? told : undefined, rest, reader };
    return most ? { ...head, ...(await whole(reader, most, abort.signal)) } : head;
  } catch {
    return { failure: GARBLED };
  }
}

/**
 * The last error of a request to each host, until a request to it gets a response: the `cause` of
 * the package's errors.
 */
export const networkErrors = new Map();

const timedOut = () => new DOMException("the gateway sent no response within the request timeout", "TimeoutError");

/**
 * Error codes of Node and Bun for a connection that was not established: no address, no listener,
 * or a certificate that is not accepted.
 */
const NOT_CONNECTED =
  /^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket|ENOTFOUND|EAI_\w+|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_\w+)$/;
/**
 * Messages for a connection that was not established: of Deno, of Node for ports that browsers
 * block too, and of Bun.
 */
const SAID_NOT_CONNECTED = /client error \(Connect\)|^bad port$|ports? \d+ (is|are) blocked|TLS handshake failed/;

/**
 * Returns whether an error of `fetch` proves that the request was not sent. Errors of browsers
 * never do.
 */
function hasNotConnected(error) {
  try {
    const { code = "", syscall, message = "", errors } = error.cause ?? error;
    if (Array.isArray(errors) && errors.length > 0) return errors.every(hasNotConnected);
    return syscall === "connect" || NOT_CONNECTED.test(code) || SAID_NOT_CONNECTED.test(message);
  } catch {
    return false;
  }
}

/**
 * Returns the seconds for which the gateway requests no further requests: `Retry-After` is a
 * number, or a time by the gateway's own clock.
 */
function restOf(headers) {
  const told = headers.get("retry-after");
  const seconds = /^\d+$/.test(told) ? Number(told) : (Date.parse(told) - Date.parse(headers.get("date"))) / 1000;
  return seconds >= 0 ? Math.min(Math.ceil(seconds), 1e9) : undefined;
}

/**
 * Acquires one of the origin's `PLACES` for a stream, if one is free, until the signal aborts: a
 * browser lock (`navigator.locks`), which all pages of an origin share.
 */
async function hasPlace(host, signal) {
  for (let number = 0; number < PLACES; number++) {
    const isFree = await new Promise((resolve, reject) => {
      const take = (lock) => {
        const takes = lock && !signal.aborted;
        resolve(takes);
        if (takes) return new Promise((leave) => signal.addEventListener("abort", leave));
      };
      navigator.locks.request(`edgelatch stream ${number} of ${host}`, { ifAvailable: true }, take).catch(reject);
    });
    if (isFree) return true;
  }
  return false;
}

async function whole(reader, most, signal) {
  let bytes = new Uint8Array(0);
  while (!signal.aborted) {
    const part = await piece(reader, most - bytes.length);
    if (!part.bytes) return part.failure === undefined ? { bytes } : part;
    bytes = bytes.length ? joined(bytes, part.bytes) : part.bytes;
  }
  return { failure: BROKEN };
}

function joined(first, second) {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

/**
 * Whether the value is a `Uint8Array`, also of another realm, such as that of a test environment.
 */
const isBytes = (value) => Object.prototype.toString.call(value) === "[object Uint8Array]";

async function piece(reader, most) {
  if (!reader) return {};
  try {
    const { done, value } = await reader.read();
    if (done) return {};
    if (!isBytes(value)) return { failure: BROKEN };
    // The length is checked before the chunk is copied: a chunk may have any length.
    return value.length > most ? { failure: TOO_LARGE } : { bytes: value };
  } catch {
    return { failure: BROKEN };
  }
}
