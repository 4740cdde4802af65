/**
 * Runs a file of WPT's `web-locks` folder as it is, with the manager of a new namespace in place of
 * `navigator.locks`. The functions below are those of WPT's `testharness.js` that the files use.
 * Prints a line of JSON for each test: `{ title, error }`.
 *
 * Environment: WPT (the folder), WPT_FILE (the file's name), EDGELATCH_TEST_URL,
 * EDGELATCH_TEST_TOKEN.
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

import { connect } from "edgelatch";
import { webLocks } from "edgelatch/web-locks";

const { WPT, WPT_FILE, EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token } = process.env;
const locks = webLocks(connect({ url, token, requestTimeoutMs: 60_000 }), { namespace: `wpt:${crypto.randomUUID()}` });

const tests = [];
const cleanups = [];
/** Returns `{ reason }`, since the reason may be a thenable. */
const rejection = (promise) => promise.then(() => assert.fail("the promise does not reject"), (reason) => ({ reason }));
const define = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true });
const globals = {
  self: globalThis,
  navigator: { locks },
  location: { pathname: `/web-locks/${WPT_FILE}`, href: `https://web-platform.test/web-locks/${WPT_FILE}` },
  setup() {},
  promise_test: (work, title) => tests.push({ work, title }),
  assert_equals: (actual, expected, what) => assert.ok(Object.is(actual, expected), `${what}: ${String(actual)}, not ${String(expected)}`),
  assert_not_equals: (actual, other, what) => assert.ok(!Object.is(actual, other), what),
  assert_array_equals: (actual, expected, what) => assert.deepEqual(actual, expected, what),
  assert_own_property: (object, name, what) => assert.ok(Object.hasOwn(object, name), what),
  assert_true: (value, what) => assert.equal(value, true, what),
  assert_false: (value, what) => assert.equal(value, false, what),
  assert_unreached: (what) => assert.fail(what),
  promise_rejects_js: async (_, Class, promise, what) => assert.equal((await rejection(promise)).reason.constructor, Class, what),
  promise_rejects_exactly: async (_, reason, promise, what) => assert.ok(Object.is((await rejection(promise)).reason, reason), what),
  async promise_rejects_dom(_, name, promise, what) {
    const { reason } = await rejection(promise);
    assert.ok(reason instanceof DOMException, what);
    assert.equal(reason.name, name, what);
  },
};
for (const [name, value] of Object.entries(globals)) define(name, value);

// A file can leave promises behind that reject, as WPT allows it with `allow_uncaught_exception`.
process.on("unhandledRejection", () => {});
for (const name of ["resources/helpers.js", WPT_FILE]) runInThisContext(await readFile(join(WPT, name), "utf8"), { filename: name });

for (const { work, title } of tests) {
  const t = {
    name: title,
    add_cleanup: (end) => cleanups.push(end),
    step_timeout: setTimeout,
    unreached_func: (what) => () => assert.fail(what),
  };
  const error = await Promise.resolve(t).then(work).then(() => undefined, (error) => String(error?.stack ?? error));
  for (const end of cleanups.splice(0)) await end();
  console.log(JSON.stringify({ title, error }));
}
process.exit();
