/**
 * Two copies of the package in one process, by `import` and by `require`. Prints how each handles
 * the other's objects.
 */

import { createRequire } from "node:module";

import * as imported from "edgelatch";

const required = createRequire(import.meta.url)("edgelatch");
const options = { url: process.env.EDGELATCH_TEST_URL, token: process.env.EDGELATCH_TEST_TOKEN, requestTimeoutMs: 60_000 };

/** Returns how the first copy handles errors, locks and leases of the second. */
async function between(mine, theirs) {
  const failure = errorOf(() => theirs.connect({ url: "redis://localhost", token: "t" }));
  const { InvalidOptionError, EdgelatchError, LeaseLostError } = mine;
  const [locks, other] = [mine.connect(options), theirs.connect(options).lock(`copies:${crypto.randomUUID()}`)];
  const lease = await other.acquire();
  const messages = [
    errorOf(() => locks.multiLock([locks.lock("a"), other])).message,
    errorOf(() => locks.redLock([other])).message,
    (await locks.guard(other.name).claim(lease).catch((error) => error)).message,
  ];
  return {
    isOurs: [InvalidOptionError, EdgelatchError, LeaseLostError].map((Class) => failure instanceof Class),
    isTheirs: failure instanceof theirs.InvalidOptionError,
    messages,
    end: await lease.release(),
  };
}

function errorOf(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
}

const areTwo = imported.InvalidOptionError !== required.InvalidOptionError;
console.log(JSON.stringify([areTwo, await between(imported, required), await between(required, imported)]));
