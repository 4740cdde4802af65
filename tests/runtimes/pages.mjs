/** Declares the suite of cases as tests of pages in a browser. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { runPage } from "./browser.mjs";
import { remoteTests } from "./remote.mjs";
import { list } from "./suite.mjs";

/** The cases of one page are sequential: each test begins when the case before it has ended. */
const IN_TURN = { concurrency: 1 };

/**
 * Starts a browser before the tests of the block that is being described, and ends it after them.
 * Returns a function that returns the browser.
 */
export function browserOf(launch) {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser?.close());
  return () => browser;
}

/**
 * Declares the suite on a page for each of these ways to load the package. `where()` returns the
 * gateway: `{ url, token }`.
 */
export function pages(browser, ways, where) {
  for (const way of ways) {
    describe(way.name, IN_TURN, () => {
      const end = remoteTests(list(), (report, only) => runPage(browser(), way, { ...where(), report, only }));
      test("the browser reports no error", async () => assert.deepEqual((await end()).complaints, []));
      // S44.
      test("the page stores nothing that a duplicated tab could start from", async () => assert.deepEqual((await end()).stored, []));
    });
  }
}
