// What a JavaScript runtime lends: timers, entropy, requests. Everything that is waited for is an
// object that says whether it is over, and wakes who waits.

/** What can go wrong on the way: places in `FAILURES` in src/transport/host_fetch.rs. */
const [NOT_SENT, BROKEN, REDIRECTED, GARBLED, TOO_LARGE] = [0, 1, 2, 3, 4];

/** What this runs in: places in `STREAMS` there. */
const [PROGRAM, WORKER, PAGE, OLD_PAGE] = [0, 1, 2, 3];

/**
 * How many streams all pages of an origin may have open at one gateway. A browser has six
 * connections of HTTP/1.1 for a host, and whatever else a page asks there wants some.
 */
const PLACES = 2;

export function runtime() {
  const { userAgent = "", locks } = globalThis.navigator ?? {};
  if (userAgent === "Cloudflare-Workers") return WORKER;
  // Workers of pages have a location too.
  if (!("location" in globalThis) || userAgent.startsWith("Deno")) return PROGRAM;
  return locks ? PAGE : OLD_PAGE;
}

/** Whether this is a program that ends by itself once nothing is left to wait for. */
export const isProgram = runtime() === PROGRAM;

/**
 * Whether timers keep a program running: yes, unless the embedder keeps it running while calls are
 * pending (pkg/api.js).
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

  /** Nobody wants what comes of it any more. */
  quit() {
    this.#wake = undefined;
    // Outside of the request that it belongs to, a Worker's runtime refuses.
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
 * Hears a signal that is aborted; one that cannot be read (a Worker's, of another request) counts
 * as such, by what it throws.
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
      // Nothing is left behind on a signal that may live for long.
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

/** Fills these bytes from a cryptographic source; false when there is none. */
export function fill(bytes) {
  try {
    crypto.getRandomValues(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * Carries one request, by this fetch function or by the runtime's. It is over when the body is
 * there, of so many bytes at the most; where a stream is accepted, with the head of the answer.
 */
export function send(fetch, url, authorization, type, token, accept, body, most, wake) {
  const pending = new Pending(wake);
  const headers = { authorization, "content-type": type, "upstash-sync-token": token, accept };
  for (const name in headers) if (headers[name] === undefined) delete headers[name];
  carry(pending, fetch, url, { method: "POST", headers, body, redirect: "manual" }, accept ? 0 : most).then((result) => {
    // What is whole has nothing left to be given up.
    if (result.bytes) pending.giveUp = undefined;
    pending.end(result);
  });
  return pending;
}

/** Reads the next piece of a body; there are no bytes at its end. */
export function read({ reader }, most, wake) {
  const pending = new Pending(wake);
  piece(reader, most).then((part) => pending.end(part));
  return pending;
}

async function carry(pending, fetch, url, init, most) {
  const abort = new AbortController();
  // The URL of a stream contains the lock's name, and so does what some runtimes say of a failure:
  // see `redactNames`.
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
    // Runtimes without these options throw at them; they are in no need of them either.
    const known = globalThis.Request?.prototype ?? {};
    for (const option in options) if (option in known) init[option] = options[option];
    if (!most && runtime() >= PAGE && !(await hasPlace(new URL(url).host, abort.signal))) return { failure: NOT_SENT };
    answer = fetch ? fetch(url, init) : globalThis.fetch(url, init);
  } catch (error) {
    // A fetch that throws at once has not begun.
    return failed(error, NOT_SENT);
  }
  try {
    answer = await answer;
  } catch (error) {
    return failed(error, hasNotConnected(error) ? NOT_SENT : BROKEN);
  }
  if (networkErrors.size) networkErrors.delete(new URL(url).host);
  // What a fetch function gives is taken for what it shows itself to be: it may be the caller's
  // own.
  try {
    const status = Number.isInteger(answer.status) ? answer.status : 0;
    // A redirection that is not followed is shown as what it is, or by browsers as status 0.
    if (status <= 0 || (status >= 300 && status < 400)) return { failure: REDIRECTED };
    const told = answer.headers.get("upstash-sync-token");
    const rest = status < 400 ? undefined : restOf(answer.headers);
    const reader = answer.body?.getReader();
    pending.giveUp = () => {
      stop();
      // Deno leaves a connection open that is aborted at the moment when something comes; a
      // caller's own fetch may not heed it at all.
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
 * Codes of Node and Bun for a connection that was not made: no address, nobody there, a certificate
 * that is not accepted.
 */
const NOT_CONNECTED =
  /^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket|ENOTFOUND|EAI_\w+|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_\w+)$/;
/** The same in words: Deno, Node for ports that no browser would ask either, and Bun. */
const SAID_NOT_CONNECTED = /client error \(Connect\)|^bad port$|ports? \d+ (is|are) blocked|TLS handshake failed/;

/** Whether the request certainly did not leave, by an error of `fetch`: browsers do not tell. */
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
 * For how many seconds the gateway wants to be left alone: it names a number, or a time by its own
 * clock.
 */
function restOf(headers) {
  const told = headers.get("retry-after");
  const seconds = /^\d+$/.test(told) ? Number(told) : (Date.parse(told) - Date.parse(headers.get("date"))) / 1000;
  return seconds >= 0 ? Math.min(Math.ceil(seconds), 1e9) : undefined;
}

/**
 * Takes a place for a stream until it is given up, if one is free: what browsers call a lock, which
 * all pages of an origin share.
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

/** Also of another realm, such as that of a test environment. */
const isBytes = (value) => Object.prototype.toString.call(value) === "[object Uint8Array]";

async function piece(reader, most) {
  if (!reader) return {};
  try {
    const { done, value } = await reader.read();
    if (done) return {};
    if (!isBytes(value)) return { failure: BROKEN };
    // Looked at before it is copied: it may be of any length.
    return value.length > most ? { failure: TOO_LARGE } : { bytes: value };
  } catch {
    return { failure: BROKEN };
  }
}
