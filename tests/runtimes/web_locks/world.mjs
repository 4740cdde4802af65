/** The environment of a case: the lock manager of a namespace of its own, and its other clients. */

import { ok, rejection, same } from "../check.mjs";

export class World {
  #gateway;
  #ends = [];

  /** `edgelatch` and `webLocks` are the entries of the package. */
  constructor({ edgelatch, webLocks, url, token }) {
    Object.assign(this, { edgelatch, webLocks });
    this.#gateway = { url, token };
    this.namespace = `web-locks:${crypto.randomUUID()}`;
    this.locks = this.other();
  }

  /** Returns an edgelatch client. Its requests have time on a busy machine. */
  client() {
    return this.edgelatch.connect({ ...this.#gateway, requestTimeoutMs: 60_000 });
  }

  /** Returns the lock manager of another client of the namespace. */
  other(options = {}) {
    return this.webLocks.webLocks(this.client(), { namespace: this.namespace, ...options });
  }

  name() {
    return `name-${crypto.randomUUID()}`;
  }

  /** Requests a lock and holds it until the end of the case; returns the promise of the request. */
  hold(name, options = {}, locks = this.locks) {
    const { promise, resolve } = Promise.withResolvers();
    const released = locks.request(name, options, () => promise);
    this.#ends.push(() => (resolve(), released.catch(() => {})));
    return released;
  }

  async end() {
    for (const end of this.#ends) await end();
  }
}

/** A promise with its functions, and a request that holds a lock until `release` is called. */
export function held(locks, name, options = {}) {
  const granted = Promise.withResolvers();
  const ended = Promise.withResolvers();
  const released = locks.request(name, options, (lock) => {
    granted.resolve(lock);
    return ended.promise;
  });
  released.catch(granted.reject);
  return { granted: granted.promise, released, release: ended.resolve };
}

/** Checks that a promise rejects with a `DOMException` of this name. */
export async function rejectsDom(promise, name) {
  const error = await rejection(promise);
  ok(error instanceof DOMException, `a DOMException, not ${error}`);
  same(error.name, name, "name of the exception");
}

export async function rejectsType(promise) {
  const error = await rejection(promise);
  ok(error instanceof TypeError, `a TypeError, not ${error}`);
}

/** Checks the reason itself, which may be any value, even a thenable. */
export async function rejectsExactly(promise, reason) {
  const isSame = await promise.then(() => false, (error) => error === reason);
  ok(isSame, "it rejects with the reason itself");
}

export const unreached = (what) => () => {
  throw new Error(`reached: ${what}`);
};
