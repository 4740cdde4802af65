// Observes clients from the outside: replaces the methods of their objects by methods that report
// what the original ones did. So an entry that observes costs the other entries nothing.
// `edgelatch/log` and `edgelatch/opentelemetry` each have an observer, whose functions are called
// with plain values; an error in one of them is ignored.
import { OBJECT } from "./mark.js";

/** The methods of a client that create an object with leases. */
const KINDS = [
  "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "groupLock", "multiLock", "redLock",
  "semaphore", "permitExpirableSemaphore",
];
/** A renewal extends a lease by more than this; readings of one end differ by less. */
const SLACK_MS = 5;

const now = () => performance.now();

/** Calls a function of the observer. */
function report(observer, name, ...values) {
  try {
    return observer[name]?.(...values);
  } catch {}
}

/** Replaces a method of one object by what `wrap` makes of it. */
function replace(object, name, wrap) {
  const original = object[name];
  if (typeof original !== "function") return;
  Object.defineProperty(object, name, { value: wrap(original), configurable: true, writable: true });
}

/** Observes a client, and all objects that are created from it. */
export function observeClient(client, observer) {
  const mode = {};
  observeCreators(client, { ...observer, waited: () => observeMode(client, observer, mode) });
  return client;
}

function observeCreators(client, observer) {
  for (const kind of KINDS) {
    replace(client, kind, (create) => function (...values) {
      return observeLock(create.apply(this, values), observer);
    });
  }
  for (const kind of ["readWriteLock", "fairReadWriteLock"]) {
    replace(client, kind, (create) => function (...values) {
      const sides = create.apply(this, values);
      observeLock(sides.read, observer);
      observeLock(sides.write, observer);
      return sides;
    });
  }
  replace(client, "owner", (create) => function (...values) {
    const owner = create.apply(this, values);
    observeCreators(owner, observer);
    return owner;
  });
}

/**
 * Reports how waiters learn of releases, if that has changed. Called after a wait only: then the
 * client knows it, so no promise is left pending that another request of a Worker would resolve.
 */
function observeMode(client, observer, mode) {
  const events = client.events();
  events.next().then(({ value }) => {
    if (value?.type !== "polling" && value?.type !== "stream") return;
    if (mode.last !== value.type) report(observer, "modeChanged", client[OBJECT], value.type);
    mode.last = value.type;
  }, () => {});
}

/** Makes `derived` throw at `using` without `await`, as the promise that it was derived from. */
function withDispose(derived, original) {
  const dispose = Symbol.dispose && Object.getOwnPropertyDescriptor(original, Symbol.dispose);
  return dispose ? Object.defineProperty(derived, Symbol.dispose, dispose) : derived;
}

function observeLock(lock, observer) {
  const subject = lock[OBJECT];
  for (const name of ["acquire", "tryAcquire"]) {
    replace(lock, name, (acquire) => function (...values) {
      const acquisition = beginAcquisition(observer, subject);
      const acquired = acquire.apply(this, values);
      return withDispose(acquired.then((lease) => {
        if (lease) observeLease(lease, subject, observer, acquisition);
        else acquisition.end({ isContended: true, code: "wait-timeout" });
        return lease;
      }, (error) => {
        acquisition.fail(error);
        throw error;
      }), acquired);
    });
  }
  replace(lock, "run", (run) => function (...values) {
    return observeRun(this, run, values, subject, observer);
  });
  return lock;
}

function beginAcquisition(observer, subject) {
  const began = now();
  const context = report(observer, "acquire", subject);
  /** Reports the end: of a grant `token`, else `code` and `error`. */
  const end = (ending) => {
    report(observer, "acquired", context, subject, { waitedMs: now() - began, isContended: false, ...ending });
    // A try without a wait has neither.
    if (ending.isContended && (ending.token ?? ending.error) !== undefined) report(observer, "waited");
  };
  const fail = (error) => {
    const code = typeof error?.code === "string" ? error.code : "cancelled";
    end({ isContended: code === "wait-timeout", code, error });
  };
  return { end, fail };
}

/** Observes `run`, which acquires and releases without the methods of the lock. */
async function observeRun(lock, run, values, subject, observer) {
  const acquisition = beginAcquisition(observer, subject);
  const place = values.findIndex((value) => typeof value === "function");
  const work = values[place];
  let hold, release;
  const observed = [...values];
  if (place >= 0) {
    observed[place] = async (lease) => {
      hold = observeLease(lease, subject, observer, acquisition);
      try {
        return await (observer.within ? observer.within(hold.context, () => work(lease)) : work(lease));
      } finally {
        release = hold.beginRelease();
      }
    };
  }
  try {
    const result = await run.apply(lock, observed);
    release("released");
    return result;
  } catch (error) {
    if (hold) release(error?.code === "lease-lost" ? "lost" : "released");
    else acquisition.fail(error);
    throw error;
  }
}

/** The holds whose renewals are observed: leases of one owner can share a hold. */
const renewed = new WeakSet();

/** Observes a lease to its end. Nothing here refers to the lease, so that it can be collected. */
function observeLease(lease, subject, observer, acquisition) {
  const { hold } = lease[OBJECT];
  const { token } = lease;
  acquisition.end({ token, isContended: hold.get("hasWaited") === 1 && lease.holdCount === 1 });
  const began = now();
  const context = report(observer, "hold", subject, token);
  let isOver = false;
  const end = (outcome) => {
    if (isOver) return;
    isOver = true;
    report(observer, "held", context, subject, outcome, now() - began);
  };
  const lost = (reason) => {
    if (!isOver) report(observer, "lost", context, subject, reason);
    end("lost");
  };
  const signal = hold.signal(subject);
  signal.addEventListener("abort", () => lost(signal.reason?.reason ?? "gone"), { once: true });
  observeRenewals(hold, () => report(observer, "renewed", context, subject));
  /** Begins a release; the returned function ends it with an outcome or an error. */
  const beginRelease = () => {
    const releaseBegan = now();
    const release = report(observer, "release", subject);
    return (outcome, error) => {
      const code = error ? (error.code ?? "outcome-unknown") : outcome === "released" ? undefined : "lease-lost";
      report(observer, "released", release, subject, code, now() - releaseBegan);
      if (outcome === "lost") lost("gone");
      else end(outcome);
    };
  };
  for (const [name, isResult] of [["release", true], [Symbol.asyncDispose, false]]) {
    if (name === undefined) continue;
    replace(lease, name, (release) => function (...values) {
      const ended = beginRelease();
      return release.apply(this, values).then((result) => {
        ended(isResult && result !== "released" ? "lost" : "released");
        return result;
      }, (error) => {
        ended(error?.code === "lease-lost" ? "lost" : "unknown", error);
        throw error;
      });
    });
  }
  return { context, beginRelease };
}

/** Calls `onRenewed` after each renewal of a hold: then its end is later than before. */
function observeRenewals(hold, onRenewed) {
  if (renewed.has(hold)) return;
  renewed.add(hold);
  const readEnd = () => now() + hold.get("remaining");
  let end = readEnd();
  const check = () => {
    if (hold.hasEnded) return;
    hold.watchers.add(changed);
    try {
      const last = end;
      end = readEnd();
      if (end > last + SLACK_MS) onRenewed();
    } catch {}
  };
  // In a microtask: the client forgets its watchers after it has called them.
  const changed = () => queueMicrotask(check);
  hold.watchers.add(changed);
}

/** Returns a fetch function that reports each request but those of streams. */
export function observeFetch(fetch, onRequest) {
  const done = (error) => {
    try {
      onRequest(error);
    } catch {}
  };
  // `connect` rejects it.
  if (fetch !== undefined && typeof fetch !== "function") return fetch;
  return (url, init) => {
    const send = fetch ?? globalThis.fetch;
    if (init.headers.accept === "text/event-stream") return send(url, init);
    let response;
    try {
      response = send(url, init);
    } catch (error) {
      done("not-sent");
      throw error;
    }
    return Promise.resolve(response).then((result) => {
      done(result?.status >= 400 ? String(result.status) : undefined);
      return result;
    }, (error) => {
      done(init.signal?.aborted ? "cancelled" : (error?.name ?? "Error"));
      throw error;
    });
  };
}
