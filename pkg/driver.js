// The driver of the engine: sends the requests of the engine, passes responses to it, and settles
// the promises of calls. It contains no lock logic. Every call of the engine is synchronous; those
// that change it return records (src/js/records.rs).
import { BrokenError, InvalidOptionError, LeaseLostError, errorOf, fail, failureOf, snapshot } from "./errors.js";
import { Engine, initSync } from "./wasm/edgelatch.js";
import { concat, isWorker, onAbort, pack, read, send, sleep, unrefTimers } from "./wasm/web.js";

/** The kinds of records. src/js/numbers.rs reads their numbers from this list. */
const RECORDS = [
  "done", "failed", "aborted", "lease", "hold", "ended", "endpoint", "scope", "send", "abort", "open", "close", "timeout", "waiting",
];
const [DONE, FAILED, ABORTED, LEASE, HOLD, ENDED, ENDPOINT, SCOPE, SEND, ABORT, OPEN, CLOSE, TIMEOUT, WAITING] = RECORDS.keys();
/** The numbers that describe a hold. src/js/numbers.rs reads their places. */
const PROPERTIES = ["token", "holdCount", "remaining", "tokenOf", "hasWaited"];

/**
 * The longest timer. Timers do not run while the machine is suspended; after it has resumed, an
 * expired lease is detected within this time.
 */
const TIMER_MAX_MS = 5_000;

export let engine;
/** The error of the module, once it has failed; no function of it is called after that. */
let broken;
let lastId = 0;
/** The calls that have not ended, by their ids. */
const calls = new Map();
/** The holds with a lease that was not dropped, by their numbers. */
const holds = new Map();
/** The scopes that have something to do, by their ids. */
const scopes = new Map();
/** The caller's own fetch functions, by the numbers of the gateways. */
export const fetches = new Map();
/** The functions that wake the tasks that wait for an event of a client. */
export const clientWatchers = new Set();

/** Starts the module, compiled or as bytes, and its engine. */
export function startEngine(module) {
  initSync({ module });
  engine = new Engine();
  // The renewal of a lease must not keep a program running. Pending calls do: see `trackPending`.
  unrefTimers();
}

/**
 * Calls the engine by `work`. After an unexpected exception its memory may be inconsistent, so it
 * is never called again. Invalid options are thrown as strings and do no harm.
 */
export function use(work) {
  if (broken) throw broken;
  try {
    return work();
  } catch (thrown) {
    if (typeof thrown !== "string") throw stop(thrown);
    const [option, accepted] = thrown.split("\n");
    throw fail(InvalidOptionError, `\`${option}\` is not acceptable: expected ${accepted}`, option, accepted);
  }
}

/** Stops the use of the module: every pending call and every signal gets the error. */
function stop(cause) {
  broken ??= new BrokenError("the package had an internal error and stopped; its holds end with their leases", cause);
  for (const { reject } of calls.values()) reject(broken);
  for (const scope of scopes.values()) scope.end();
  for (const hold of holds.values()) {
    hold.abort(() => broken);
    hold.changed();
  }
  wakeAll(clientWatchers);
  return broken;
}

function wakeAll(watchers) {
  for (const wake of watchers) wake();
  watchers.clear();
}

/** Returns a promise that `wakeAll` resolves. */
export const change = (watchers) => new Promise((resolve) => watchers.add(resolve));

/** A hold, which its leases share. */
class Hold {
  leases = 0;
  hasEnded = false;
  /** Created at first use, like `#signals`: most holds need neither. */
  #watchers;
  /** The signals of its leases, each with its controller and the object that its error names. */
  #signals;
  #failure;

  /** `of` is the lock's handle in the engine, which must not be freed while the hold exists. */
  constructor(number, of) {
    this.number = number;
    this.of = of;
  }

  /** Creates a signal, which is aborted when the hold is lost. */
  signal(subject) {
    const controller = new AbortController();
    (this.#signals ??= []).push({ controller, subject });
    if (broken) this.abort(() => broken);
    else if (this.#failure) this.#lose();
    return controller.signal;
  }

  /** Ends the hold; `reason` is null after a release, and says otherwise why it is lost. */
  end(reason, message) {
    this.hasEnded = true;
    if (reason !== null) {
      this.#failure = fail(LeaseLostError, message, reason);
      this.#lose();
    }
    this.changed();
    this.forget();
  }

  #lose() {
    this.abort((subject) => errorOf(this.#failure, subject));
  }

  abort(errorFor) {
    for (const { controller, subject } of this.#signals?.splice(0) ?? []) {
      // In some runtimes `abort` throws the exception of a listener.
      try {
        controller.abort(errorFor(subject));
      } catch {}
    }
  }

  /** The functions that wake the tasks that wait for a change of the hold. */
  get watchers() {
    return (this.#watchers ??= new Set());
  }

  changed() {
    if (this.#watchers) wakeAll(this.#watchers);
  }

  /** Removes the hold from `holds` once it has ended and has no lease. */
  forget() {
    if (this.hasEnded && this.leases === 0) holds.delete(this.number);
  }

  /** Returns a number that describes the hold; NaN if there is none. */
  get(property, name) {
    const index = PROPERTIES.indexOf(property);
    return use(() => engine.holdNumber(this.number, index, name, performance.now(), Date.now()));
  }

  permitIds() {
    return use(() => engine.permitIds(this.number)).split(",").filter(Boolean);
  }
}

/** Drops the share of each lease that was collected. Older Workers have no such registry. */
const collected = globalThis.FinalizationRegistry && new FinalizationRegistry((share) => share.drop());

/** The share that one lease has in a hold. The leases of one owner can share a hold. */
export class Share {
  isReleased = false;

  constructor(hold, name) {
    hold.leases += 1;
    this.hold = hold;
    this.name = name;
  }

  /** Drops this share when `lease` is collected: the hold is no longer renewed for it. */
  dropWith(lease) {
    collected?.register(lease, this);
  }

  drop() {
    const { hold, isReleased } = this;
    hold.leases -= 1;
    tryUse(() => engine.dropLease(hold.number, !isReleased, performance.now(), Date.now()));
    hold.forget();
  }
}

/** Uses the engine for an event of the runtime, and ignores an error: no caller could get it. */
export function tryUse(work, scope) {
  try {
    use(() => handle(work(), scope));
  } catch {}
}

/**
 * Carries out the records of a call: JSON in the first line, then the body of each request in a
 * line of its own. Records of I/O belong to `scope`.
 */
function handle(text, scope) {
  if (text === undefined) return;
  const [json, ...bodies] = text.split("\n");
  for (const [kind, first, ...rest] of JSON.parse(json)) {
    if (kind === SEND) scope.send(first, bodies.shift(), rest);
    else if (kind === OPEN) scope.open(first, bodies.shift(), rest);
    else if (kind === ABORT) scope.close(first);
    else if (kind === CLOSE) scope.close(streamKey(first, rest[0]));
    else if (kind === TIMEOUT) scope.setTimer(first, rest[0]);
    else if (kind === SCOPE) scopes.get(first)?.wake(rest[0]);
    else if (kind === HOLD) holds.get(first)?.changed();
    else if (kind === ENDED) holds.get(first)?.end(...rest);
    else if (kind === ENDPOINT) wakeAll(clientWatchers);
    else if (kind === WAITING) calls.get(first)?.onWait?.();
    else settle(kind, first, rest);
  }
}

function settle(kind, id, fields) {
  const { resolve, reject, of, watch } = calls.get(id);
  calls.delete(id);
  watch?.cancel();
  if (kind === FAILED) reject(failureOf(...fields));
  else if (kind === ABORTED) reject(watch.reason);
  else if (kind === DONE) resolve(Array.isArray(fields[0]) ? snapshot(...fields[0]) : fields[0]);
  else if (kind === LEASE) {
    const [number, name] = fields;
    if (!holds.has(number)) holds.set(number, new Hold(number, of));
    resolve(new Share(holds.get(number), name));
  }
}

/** Returns an id of 32 bits, other than 0, that these calls or scopes do not use. */
function newId(used) {
  do lastId = lastId === 2 ** 32 - 1 ? 1 : lastId + 1; while (used.has(lastId));
  return lastId;
}

/** The key of a stream in `#io`. */
const streamKey = (subscription, number) => `${subscription}/${number}`;

/**
 * Calls that share requests and streams. A program has one scope. In a Worker, where I/O belongs to
 * the request that began it, the calls that begin together have their own. The code of a scope runs
 * only in its own request; another request wakes it by resolving its promise.
 */
class Scope {
  #id;
  #calls = [];
  /** The requests and streams that are open, by the engine's ids and by `streamKey`. */
  #io = new Map();
  #timer;
  #isWoken = false;
  #isOver = false;
  #resolve;

  constructor(id) {
    this.#id = id;
    scopes.set(id, this);
    this.#run();
  }

  /** Queues a call, which begins together with others. */
  add(call) {
    this.#calls.push(call);
    this.wake();
  }

  /** Removes a call that has not begun; returns whether there was one. */
  remove(id) {
    const place = this.#calls.findIndex((call) => call.id === id);
    return place >= 0 && this.#calls.splice(place, 1).length > 0;
  }

  /** Stops the I/O after the module has failed. */
  end() {
    for (const io of this.#io.values()) io.cancel();
    this.#io.clear();
    this.wake();
  }

  /** Continues the scope in its own request. In a Worker a scope that has become idle ends. */
  wake(isIdle = false) {
    this.#isOver = isIdle && isWorker;
    this.#isWoken = true;
    this.#resolve?.();
  }

  async #run() {
    while (!this.#isOver && !broken) {
      await new Promise((resolve) => {
        this.#resolve = resolve;
        if (this.#isWoken) resolve();
      });
      this.#isWoken = false;
      if (!this.#isOver && !broken) this.#turn();
    }
    this.#timer?.cancel();
    scopes.delete(this.#id);
  }

  /** Begins the queued calls, or lets the engine handle its timeout if there are none. */
  #turn() {
    if (isWorker && openScope === this) openScope = undefined;
    const begun = this.#calls.splice(0);
    for (const [place, { of, id, method, hold, numbers, texts }] of begun.entries()) {
      // Only the last call returns the requests to send.
      const drains = place === begun.length - 1;
      this.#use((...now) => engine.call(of, id, method, hold, numbers, texts, drains, ...now));
    }
    if (begun.length === 0) this.#use((...now) => engine.timeout(...now));
  }

  #use(work) {
    tryUse(() => work(this.#id, performance.now(), Date.now()), this);
  }

  send(id, body, [, to, url, authorization, type, token]) {
    const request = this.#send(to, url, authorization, type, token, undefined, body, () => {
      this.#io.delete(id);
      const { failure, status = 0, token = "", retryAfter = NaN, bytes = new Uint8Array(0) } = request;
      const all = token ? concat(new TextEncoder().encode(token), bytes) : bytes;
      this.#use((...now) => engine.respond(id, status, failure, retryAfter, all.length - bytes.length, all, ...now));
    });
    this.#io.set(id, request);
  }

  open(subscription, body, [number, to, url, authorization, type, token]) {
    const key = streamKey(subscription, number);
    const report = ({ failure, bytes }, status, retryAfter = NaN) => {
      const isOver = failure !== undefined || (status ?? bytes) === undefined;
      if (isOver) this.#io.delete(key);
      const [head, chunk] = isOver ? [] : [status, bytes];
      this.#use((...now) => engine.stream(subscription, number, head, retryAfter, chunk, ...now));
      if (this.#io.has(key)) readNext();
    };
    let chunk;
    const readNext = () => {
      chunk = read(stream, () => report(chunk));
    };
    const stream = this.#send(to, url, authorization, type, token, "text/event-stream", body, () => report(stream, stream.status, stream.retryAfter));
    const cancel = () => {
      stream.cancel();
      chunk?.cancel();
    };
    this.#io.set(key, { cancel });
  }

  #send(to, url, authorization, type, token, accept, body, wake) {
    return send(fetches.get(to), url, authorization ?? undefined, type, token ?? undefined, accept, body, wake);
  }

  close(key) {
    this.#io.get(key)?.cancel();
    this.#io.delete(key);
  }

  /**
   * Sets the timer (null: none). An earlier one is never kept: after a test has reset its fake
   * timers, one of these never fires.
   */
  setTimer(left, isIdle) {
    if (isIdle && isWorker) return this.wake(isIdle);
    this.#timer?.cancel();
    this.#timer = left === null ? undefined : sleep(Math.min(left, TIMER_MAX_MS), () => this.#fire());
  }

  /** Continues in a microtask: responses that have arrived come first. */
  #fire() {
    this.#timer = undefined;
    this.wake();
  }
}

/** The scope of a program, or in a Worker that of the calls of this turn of the event loop. */
let openScope;

function scope() {
  openScope ??= new Scope(isWorker ? newId(scopes) : 0);
  return openScope;
}

/** Begins a call of an object, and returns a promise of its result: a `Share` for a lease. */
export function call(of, method, { numbers = [], texts, signal, hold, onWait }) {
  return new Promise((resolve, reject) => {
    if (broken) throw broken;
    const given = numbers.some((number) => number !== undefined) ? numbers : undefined;
    const begun = { of, id: newId(calls), method, hold: hold?.number ?? NaN, numbers: given, texts: texts && pack(texts) };
    const pending = { id: begun.id, resolve, reject, of, onWait, scope: undefined, watch: undefined };
    if (signal && watch(pending, signal)) return reject(pending.watch.reason);
    calls.set(begun.id, pending);
    (pending.scope = scope()).add(begun);
  });
}

/** Cancels a pending call once the signal aborts; returns whether it has aborted already. */
function watch(pending, signal) {
  // The listener is created outside of `call`, whose arguments it would keep.
  const { id, reject } = pending;
  pending.watch = onAbort(signal, () => {
    // A caller can dispatch an `abort` event to a signal that is not aborted.
    if (!pending.watch.done) return;
    if (!pending.scope.remove(id)) return tryUse(() => engine.cancel(id, performance.now(), Date.now()));
    calls.delete(id);
    pending.watch.cancel();
    reject(pending.watch.reason);
  });
  return pending.watch.done;
}
