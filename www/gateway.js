/**
 * The page's own way to the gateway: by a token that opens the names of one run for minutes, and
 * nothing else.
 */

import { ask } from "./ask.js";

/** So long before its end a token is not begun with any more: longer than a request takes. */
const MARGIN_MS = 30_000;

/** What the page asks Redis about one run, past the Worker. */
export class Gateway {
  #run;
  #lock = null;
  #until = 0;

  constructor(run) {
    this.#run = run;
  }

  /** What Redis says of the run's lock now. */
  async inspect() {
    return (await this.#open()).inspect();
  }

  /** The lock, by a token that lasts; a client keeps the one that it was made with. */
  async #open() {
    if (Date.now() < this.#until) return this.#lock;
    const asked = Date.now();
    const { url, token, livesMs, key } = await ask(`/api/token?run=${this.#run}`, { method: "POST" });
    // Loaded when it is wanted: the page is there before it.
    const { connect } = await import("./edgelatch/index.js");
    this.#lock = connect({ url, token }).lock(key);
    this.#until = asked + livesMs - MARGIN_MS;
    return this.#lock;
  }
}
