/** Passes values of another realm, as test environments do. Prints the steps that failed. */

import { createContext, runInContext } from "node:vm";

import { connect, GatewayUnreachableError } from "edgelatch";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token } = process.env;
const realm = createContext({});
const foreign = (source) => runInContext(source, realm);
const client = (options) => connect({ url, token, requestTimeoutMs: 60_000, ...options });
const locks = client();
const lock = locks.lock(`realms:${crypto.randomUUID()}`);

/** A signal whose class, listeners and reason are the realm's. */
const newSignal = () => foreign(`(() => {
  class AbortSignal {
    aborted = false;
    #listeners = new Set();
    addEventListener(_, listener) { this.#listeners.add(listener); }
    removeEventListener(_, listener) { this.#listeners.delete(listener); }
    abort() { this.aborted = true; this.reason = new RangeError("enough"); for (const listener of this.#listeners) listener(); }
  }
  return new AbortSignal();
})()`);

/** Makes responses of the realm's objects, with this status and these bytes. */
const newResponse = foreign(`(status, bytes) => {
  const chunks = [Uint8Array.from(bytes)];
  const read = async () => (chunks.length ? { done: false, value: chunks.pop() } : { done: true });
  return { status, headers: { get: () => null }, body: { getReader: () => ({ read, cancel: async () => {} }) } };
}`);

const steps = {
  async "bytes are accepted as values of a group"() {
    const lease = await locks.groupLock(lock.name, [foreign("Uint8Array.of(97)")]).acquire();
    const taken = await locks.groupLock(lock.name, ["a"]).tryAcquire();
    return [taken === null, (await lease.release()) === "released"];
  },
  async "a signal aborts a wait with its reason"() {
    const holder = await lock.acquire();
    const signal = newSignal();
    const waits = lock.acquire({ waitMs: "until-aborted", signal }).catch((error) => error);
    await lock.inspect();
    signal.abort();
    const reason = await waits;
    return [reason === signal.reason, (await holder.release()) === "released"];
  },
  async "a response is read"() {
    const send = async (input, init) => {
      const response = await fetch(input, init);
      return newResponse(response.status, new Uint8Array(await response.arrayBuffer()));
    };
    return [await client({ fetch: send, wakeups: "off" }).lock(lock.name).run((lease) => lease.token > 0)];
  },
  async "a connection error is the cause, and the message says that nothing is held"() {
    const refused = foreign(`Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) })`);
    const error = await client({ fetch: () => Promise.reject(refused) }).lock(lock.name).tryAcquire().catch((reason) => reason);
    return [error instanceof GatewayUnreachableError, error.cause === refused, error.message.includes("nothing is held")];
  },
};

const wrong = {};
for (const [name, step] of Object.entries(steps)) {
  const results = await step().catch((error) => [String(error.stack)]);
  if (results.length === 0 || results.some((result) => result !== true)) wrong[name] = results;
}
console.log(JSON.stringify([Object.keys(steps).length, wrong]));
