/**
 * Runs the suite of cases against the packed npm package in Firefox ESR and in WebKit.
 *
 * Environment: EDGELATCH_TARBALL, EDGELATCH_TEST_URL, EDGELATCH_TEST_TOKEN, EDGELATCH_TOOLS and
 * EDGELATCH_ONLY as for `run.mjs`, with puppeteer-core among the tools; FIREFOX (the program).
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { ways } from "./browser.mjs";
import { launchFirefox } from "./firefox.mjs";
import { openFront } from "./front.mjs";
import { browserOf, pages } from "./pages.mjs";
import { removeProjects, required } from "./project.mjs";
import { launchWebKit } from "./webkit.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");

let front;
before(async () => (front = await openFront(url)));
after(async () => {
  front?.close();
  await removeProjects();
});

for (const [name, launch] of [["Firefox", launchFirefox], ["WebKit", launchWebKit]]) {
  // One page at a time: a browser slows down the timers of a page that is not in front.
  describe(name, { concurrency: 1 }, () => pages(browserOf(launch), ways, () => ({ url: front.url, token })));
}

// Runs after all other tests, and checks their requests.
test("pages request only the paths of a gateway", () => assert.deepEqual([...front.unexpected], []));
