/**
 * The suite of the packed npm package, the same in every runtime.
 *
 * A case is a function of a `World`: `{ edgelatch, url, token, … }`. It throws if an assertion
 * fails.
 */

import { abort } from "./cases/abort.mjs";
import { environment } from "./cases/environment.mjs";
import { fairReadWrite } from "./cases/fair_read_write.mjs";
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
import { isExpectedUrl, same, secrets } from "./check.mjs";
import { changedPrototypes } from "./watch.mjs";

/** `quiet` is last: it checks that the earlier cases have left nothing behind. */
const groups = {
  lock, kinds, readWrite, fairReadWrite, together, permits, lease, owner, abort, loss, requests, waking, environment, options, faults, fencing,
  replicas, hostile, quiet,
};

/**
 * The cases of these groups run concurrently, since most of them wait. None of them moves a clock
 * or replaces a global.
 */
const CONCURRENT = ["replicas", "hostile"];

const cases = Object.entries(groups).flatMap(([group, members]) =>
  Object.entries(members).map(([name, run]) => ({ group, name: `${group}: ${name}`, run })),
);

/** The groups that do not depend on one dialect's commands. */
const OF_ANY_DIALECT = ["lock", "waking", "quiet"];

/** Returns the cases for a dialect, with or without a faulty gateway. */
const casesFor = ({ dialect = "upstash", faulty }) =>
  cases.filter(({ group }) => (dialect === "upstash" || OF_ANY_DIALECT.includes(group)) && (group !== "faults" || faulty));

/**
 * Returns all cases in the order in which they run, so that the program that starts a runtime
 * notices a missing one.
 */
export const list = (of = {}) => casesFor(of).map(({ name, group }) => ({ name, isConcurrent: CONCURRENT.includes(group) }));

/**
 * Runs the cases, or only the one of this name. Calls `report` first with `{ begun: true }`, and at
 * the end of each case with `{ name, error }`, without an `error` if it passed.
 */
export async function run({ edgelatch, url, token, loads, faulty, dialect = "upstash", only, report }) {
  secrets.add(token);
  const unexpected = unexpectedRequests({ url, faulty, dialect });
  const runCase = async ({ name, run }) => {
    try {
      await run(new World({ edgelatch, url, token, loads, faulty, dialect }));
      same(unexpected.splice(0), [], "requests to an unexpected address");
      same(changedPrototypes(), [], "shared prototypes");
    } catch (error) {
      return report({ name, error: textOf(error) });
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

/** Returns the message and the stack: only the stacks of V8 begin with the message. */
function textOf(error) {
  const stack = error?.stack ?? "";
  return stack.includes(String(error)) ? stack : `${error}\n${stack}`;
}

/** Returns a list that collects the requests which the package must not send to these gateways. */
function unexpectedRequests({ url, faulty, dialect }) {
  const isKnown = (text) =>
    text.startsWith(url) && (dialect === "webdis" ? text === `${url}/` : isExpectedUrl(text.slice(url.length))) ||
    faulty && text.startsWith(faulty) && (isExpectedUrl(text.slice(faulty.length)) || text.startsWith(`${faulty}/copies/`));
  const unexpected = [];
  const { fetch: original } = globalThis;
  globalThis.fetch = (input, init) => {
    if (!isKnown(String(input))) unexpected.push(String(input));
    return original(input, init);
  };
  return unexpected;
}

/** The environment of a case: the package, a gateway, and names that no other case uses. */
class World {
  constructor({ edgelatch, ...where }) {
    Object.assign(this, edgelatch, { edgelatch, ...where });
    this.isWorker = globalThis.navigator?.userAgent === "Cloudflare-Workers";
  }

  /**
   * Returns a client of the gateway, and the list of its requests. The request timeout is the
   * longest possible: the gateway always responds, but on a machine under load it may take longer
   * than the default of 5 s.
   */
  client(options = {}) {
    const sent = [];
    const send = options.fetch ?? ((input, init) => fetch(input, init));
    const counted = (input, init) => {
      sent.push({ input, init });
      return send(input, init);
    };
    const defaults = { url: this.url, token: this.token, dialect: this.dialect, requestTimeoutMs: 60_000 };
    const locks = this.edgelatch.connect({ ...defaults, ...options, fetch: counted });
    return { locks, sent };
  }

  /** Returns a lock that no other case uses. */
  lock(options) {
    return this.client(options).locks.lock(this.name());
  }

  name() {
    return `runtimes:${crypto.randomUUID()}`;
  }
}
