/**
 * What the packed npm package has to do, in every runtime the same.
 *
 * A case is a function of the world: `{ edgelatch, url, token, … }`. It throws when something is
 * not so.
 */

import { abort } from "./cases/abort.mjs";
import { environment } from "./cases/environment.mjs";
import { faults } from "./cases/faults.mjs";
import { fencing } from "./cases/fencing.mjs";
import { hostile } from "./cases/hostile.mjs";
import { kinds } from "./cases/kinds.mjs";
import { lease } from "./cases/lease.mjs";
import { lock } from "./cases/lock.mjs";
import { loss } from "./cases/loss.mjs";
import { options } from "./cases/options.mjs";
import { owner } from "./cases/owner.mjs";
import { permits } from "./cases/permits.mjs";
import { quiet } from "./cases/quiet.mjs";
import { readWrite } from "./cases/read_write.mjs";
import { replicas } from "./cases/replicas.mjs";
import { requests } from "./cases/requests.mjs";
import { together } from "./cases/together.mjs";
import { waking } from "./cases/waking.mjs";
import { isOfOurs, same, secrets } from "./check.mjs";
import { changedPrototypes } from "./watch.mjs";

/** `quiet` is last: it checks what the others leave behind. */
const groups = {
  lock, kinds, readWrite, together, permits, lease, owner, abort, loss, requests, waking, environment, options, faults, fencing,
  replicas, hostile, quiet,
};

/**
 * Their cases run concurrently, since most of them wait. None of them moves a clock or replaces a
 * global.
 */
const CONCURRENT = ["replicas", "hostile"];

const cases = Object.entries(groups).flatMap(([group, members]) =>
  Object.entries(members).map(([name, run]) => ({ group, name: `${group}: ${name}`, run })),
);

/** What is not about one dialect's own words. */
const OF_ANY_DIALECT = ["lock", "waking", "quiet"];

/** The cases for a dialect, and for a world with a gateway that fails or without. */
const casesFor = ({ dialect = "upstash", faulty }) =>
  cases.filter(({ group }) => (dialect === "upstash" || OF_ANY_DIALECT.includes(group)) && (group !== "faults" || faulty));

/**
 * All cases of such a world in the order in which they run, so that the program that starts a
 * runtime notices a missing one.
 */
export const list = (of = {}) => casesFor(of).map(({ name, group }) => ({ name, isConcurrent: CONCURRENT.includes(group) }));

/**
 * Runs the cases, or only the one of this name. Calls `report` first with `{ begun: true }`, and at
 * the end of each case with `{ name, error }`, without an `error` if it passed.
 */
export async function run({ edgelatch, url, token, loads, faulty, dialect = "upstash", only, report }) {
  secrets.add(token);
  const strays = straysFrom({ url, faulty, dialect });
  const runCase = async ({ name, run }) => {
    try {
      await run(new World({ edgelatch, url, token, loads, faulty, dialect }));
      same(strays.splice(0), [], "requests that went elsewhere");
      same(changedPrototypes(), [], "shared prototypes");
    } catch (error) {
      return report({ name, error: String(error?.stack ?? error) });
    }
    return report({ name });
  };
  const concurrent = [];
  await report({ begun: true });
  for (const one of casesFor({ dialect, faulty }).filter(({ name }) => !only || name === only)) {
    if (CONCURRENT.includes(one.group)) {
      concurrent.push(runCase(one));
      continue;
    }
    await Promise.all(concurrent);
    await runCase(one);
  }
  await Promise.all(concurrent);
}

/** Requests for anything but what the package asks these gateways for, as they come. */
function straysFrom({ url, faulty, dialect }) {
  const isKnown = (text) =>
    text.startsWith(url) && (dialect === "webdis" ? text === `${url}/` : isOfOurs(text.slice(url.length))) ||
    faulty && text.startsWith(faulty) && (isOfOurs(text.slice(faulty.length)) || text.startsWith(`${faulty}/copies/`));
  const strays = [];
  const { fetch: carry } = globalThis;
  globalThis.fetch = (input, init) => {
    if (!isKnown(String(input))) strays.push(String(input));
    return carry(input, init);
  };
  return strays;
}

/** What a case meets: the package, a gateway, and names that nobody else uses. */
class World {
  constructor({ edgelatch, ...where }) {
    Object.assign(this, edgelatch, { edgelatch, ...where });
    this.isWorker = globalThis.navigator?.userAgent === "Cloudflare-Workers";
  }

  /**
   * A client of the gateway, and what it has sent. Its request timeout is the longest there is: the
   * gateway always answers, but a machine under load may take longer than the default of 5 s.
   */
  client(options = {}) {
    const sent = [];
    const carry = options.fetch ?? ((input, init) => fetch(input, init));
    const counted = (input, init) => {
      sent.push({ input, init });
      return carry(input, init);
    };
    const defaults = { url: this.url, token: this.token, dialect: this.dialect, requestTimeoutMs: 60_000 };
    const locks = this.edgelatch.connect({ ...defaults, ...options, fetch: counted });
    return { locks, sent };
  }

  /** A lock that nobody else uses. */
  lock(options) {
    return this.client(options).locks.lock(this.name());
  }

  name() {
    return `runtimes:${crypto.randomUUID()}`;
  }
}
