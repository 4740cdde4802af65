// Further functions for the public classes. Some of them make several calls of the engine.
import { call, change, clientWatchers, engine, fetches, tryUse, use } from "./driver.js";
import { isProgram } from "./wasm/web.js";

/**
 * Writes to a guarded key. The writes of one hold to one key are executed one after the other. Each
 * has a deadline by the clock of the guard's Redis, which the method `newest` learns if necessary.
 */
export async function write(of, method, newest, { hold, numbers = [], texts }) {
  let number;
  while ((number = use(() => engine.beginWrite(of, hold.number, texts[1]))) === undefined) await change(hold.watchers);
  try {
    if (!use(() => engine.knowsClock(of))) await call(of, newest, {});
    return await call(of, method, { hold, numbers: [numbers[0], number], texts });
  } finally {
    tryUse(() => engine.endWrite(of, hold.number, performance.now(), Date.now()));
  }
}

/**
 * Returns the holds and waits of a namespace of fair read-write locks, which may take several
 * requests.
 */
export async function query(of, method) {
  const [held, pending, seen] = [[], [], new Set()];
  let cursor = "";
  do {
    const [next, ...lines] = (await call(of, method, { texts: [cursor] })).split("\n");
    for (const line of lines) {
      const [form, mode, kind, id, clientId, ms] = line.split("\t");
      // A renewal can move a hold behind the cursor, so that it comes again.
      if (seen.has(id)) continue;
      seen.add(id);
      const name = form.replace(/^\{([^{}]+)\}$/, "$1");
      const entry = { name, mode: mode === "x" ? "exclusive" : "shared", clientId, remainingMs: Number(ms) };
      (kind === "h" ? held : pending).push(Object.freeze(entry));
    }
    cursor = next;
  } while (cursor !== "");
  return Object.freeze({ held: Object.freeze(held), pending: Object.freeze(pending) });
}

/** Adds the gateway that these settings describe, and returns its client. */
export function connect(url, token, numbers, fetch) {
  return use(() => {
    const client = engine.connect(url, token, numbers);
    fetches.set(engine.endpoint(client), fetch);
    return client;
  });
}

export const create = (...values) => use(() => engine.create(...values));

export const nameOf = (of) => use(() => engine.name(of));

/**
 * Returns a function that waits for the next event of a client, or of the hold that `holdOf`
 * returns. `holdOf` refers to the lease, so that it is not collected while its events are read.
 */
export function events(of, holdOf) {
  const number = holdOf?.().number ?? NaN;
  const source = use(() => engine.events(of, number));
  return async () => {
    for (;;) {
      const event = use(() => engine.nextEvent(source, performance.now(), Date.now()));
      if (event !== undefined) return JSON.parse(event);
      await change(holdOf?.().watchers ?? clientWatchers);
    }
  };
}

/** Saved at load: the fake timers of a test would keep no program running. */
const { clearInterval, setInterval } = globalThis;
/**
 * The number of pending calls and callbacks. While it is not 0, a program of Node, Deno or Bun
 * keeps running.
 */
let pending = 0;
let timer;

export function trackPending(difference) {
  pending += difference;
  // Node and Bun can keep the timer, which is cheaper than a new one for each call.
  if (timer?.ref) pending === 0 ? timer.unref() : timer.ref();
  else if (pending === 0) timer = clearInterval(timer);
  else if (isProgram) timer ??= setInterval(() => {}, 2 ** 30);
}
