/**
 * The page's direct access to the gateway, with a token for the names of one run that lasts for
 * minutes.
 */

import { fetchJson } from "./request.js";

/** How long before its end a token is no longer used: longer than a request takes. */
const MARGIN_MS = 30_000;

/** The page's requests to Redis about one run, without the Worker. */
export class Gateway {
  #run;
  #lock = null;
  #validUntil = 0;

  constructor(run) {
    this.#run = run;
  }

  /** Returns the state of the run's lock in Redis. */
  async inspect() {
    return (await this.#open()).inspect();
  }

  /**
   * Returns the lock, with a token that is still valid; a client keeps the token that it was
   * created with.
   */
  async #open() {
    if (Date.now() < this.#validUntil) return this.#lock;
    const sentAt = Date.now();
    const { url, token, livesMs, key } = await fetchJson(`/api/token?run=${this.#run}`, { method: "POST" });
    // Loaded on first use, so that the page appears before it.
    const { connect } = await import("./edgelatch/index.js");
    this.#lock = connect({ url, token }).lock(key);
    this.#validUntil = sentAt + livesMs - MARGIN_MS;
    return this.#lock;
  }
}
