/**
 * Tests the demo as a visitor uses it: the Worker's responses, and the page in a browser.
 *
 * Environment: EDGELATCH_DEMO_URL (where the demo runs), EDGELATCH_TOOLS (a `node_modules` with
 * playwright-core), CHROMIUM (the browser's program), EDGELATCH_SCREENSHOTS (a folder, if pictures
 * are wanted), EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (the gateway that the Worker uses).
 *
 * The tests wait for events, never for time to pass, and assert no duration.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawnHolds, isOver, noSidewaysScroll, open, picture, url, VISITORS } from "./visit.mjs";
import "./break.mjs";
import "./docs.mjs";
import "./kinds.mjs";
import "./token.mjs";
import "./checker.mjs";
import "./writes.mjs";

test("the Worker refuses bad input with a reason", async () => {
  const bad = [
    "once", "once?id=", "once?id=A", "once?id=a&id=b", `once?id=${"a".repeat(33)}`, "once?id=%00",
    "contend?id=a&run=r&leaseMs=3000&holdMs=1000", "contend?kind=x&role=alone&id=a&run=r&leaseMs=3000&holdMs=1000",
    "contend?kind=toString&role=a&id=a&run=r&leaseMs=3000&holdMs=1000",
    "contend?kind=lock&role=read&id=a&run=r&leaseMs=3000&holdMs=1000",
    "contend?kind=lock&role=alone&id=a&run=r&leaseMs=3000&holdMs=1000&after=wrong",
    ...[
      "leaseMs=3000", "leaseMs=3000&holdMs=1e3", "leaseMs=499&holdMs=1000", "leaseMs=3000&holdMs=15001",
      "leaseMs=3000&holdMs=1000&delayMs=-1", "leaseMs=3000&holdMs=1000&delayMs=30001", "leaseMs=3000&holdMs=1000&number=101",
    ].map((times) => `contend?kind=lock&role=alone&id=a&run=r&${times}`),
    "contend?kind=lock&role=alone&id=a&run=a:b&leaseMs=3000&holdMs=1000",
    "write?run=r&token=0&value=a", "write?run=r&token=-1&value=a",
    "write?run=r&token=9007199254740992&value=a", "write?run=r&token=1.5&value=a", "write?run=r&token=1&value=%20",
  ];
  for (const path of bad) {
    const response = await fetch(new URL(`/api/${path}`, url), { method: "POST" });
    const { error } = await response.json();
    assert.equal(response.status, 400, path);
    assert.equal(error.code, "bad-input", path);
    assert.match(error.message, /^"[a-zA-Z]+" must be /, path);
  }
  assert.equal((await fetch(new URL("/api/token", url), { method: "POST" })).status, 400);
  for (const path of ["verdict?kind=lock", "verdict?run=r&kind=x", "cast?run=r&kind=lock"]) {
    assert.equal((await fetch(new URL(`/api/${path}`, url))).status, 400, path);
  }
  assert.equal((await fetch(new URL("/api/once?id=a", url))).status, 405);
  assert.equal((await fetch(new URL("/api/nothing", url))).status, 404);
});

test("the Worker's own code is not served", async () => {
  for (const path of ["/worker.js", "/api/once.js", "/api/redis.js", "/api/scoped-token.js", "/.dev.vars", "/.assetsignore", "/_headers"]) {
    assert.equal((await fetch(new URL(path, url))).status, 404, path);
  }
});

test("twenty requests at once count to twenty, one after the other", async () => {
  assert.deepEqual(await post("/api/reset"), { counter: 0 });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => post(`/api/once?id=${index}`)));
  answers.sort((a, b) => a.before - b.before);
  assert.deepEqual(answers.map(({ before }) => before), Array.from({ length: 20 }, (_, index) => index));
  assert.deepEqual(answers.map(({ after }) => after), Array.from({ length: 20 }, (_, index) => index + 1));
  assertRising(answers.map(({ token }) => token));
});

test("the store refuses an older token, and no other", async () => {
  const run = `guard-${crypto.randomUUID().slice(0, 8)}`;
  const write = (token) => post(`/api/write?run=${run}&token=${token}&value=a`);
  assert.deepEqual(await write(1795268812119001), { accepted: true, newest: 1795268812119001 });
  assert.deepEqual(await write(1795268812119000), { accepted: false, newest: 1795268812119001 });
  assert.deepEqual(await write(1795268812119001), { accepted: true, newest: 1795268812119001 });
  assert.deepEqual(await write(1795268812119002), { accepted: true, newest: 1795268812119002 });
});

test("contenders take turns, and their tokens rise", async () => {
  const visit = await open({ viewport: { width: 1200, height: 900 }, colorScheme: "dark" });
  const { page } = visit;
  await page.getByRole("radio", { name: "3" }).check();
  await page.getByRole("button", { name: "Start" }).click();
  await page.locator(".lane[data-state=holding]").first().waitFor();
  await picture(page, "turns-running");
  await isOver(page);
  const holds = await drawnHolds(page);
  assert.equal(holds.length, 3);
  assertTurns(holds);
  await page.getByText("Over: 3 holds, never two holders at once, each token higher than the one before.").waitFor();
  assert.equal(await page.locator("#fact-holder").innerText(), "none");
  await picture(page, "turns-over");
  await visit.end();
});

for (const visitor of VISITORS) {
  test(`a killed holder is succeeded, and its late write refused (${visitor.name})`, async () => {
    const visit = await open(visitor);
    await killAndWriteLate(visit.page, visitor.name);
    await visit.end();
  });
}

/** Operated by keyboard only: elements that respond to keys also respond to touch. */
async function killAndWriteLate(page, name) {
  await noSidewaysScroll(page);
  await page.getByRole("button", { name: "Start" }).press("Enter");

  const kill = page.getByRole("button", { name: /^Kill Worker/ });
  await kill.first().press("Enter");
  const dead = page.locator(".lane:has(.mark.kill)");
  await dead.waitFor();
  await noSidewaysScroll(page);
  await picture(page, `${name}-killed`);

  const write = dead.getByRole("button", { name: /^Let the dead Worker \d write$/ });
  await page.locator(".lane:has(.mark.kill) .lane-action[aria-disabled=false]").waitFor();
  assert.ok(await write.evaluate((button) => button === document.activeElement), "the focus stays on the button");
  await write.press("Enter");
  const verdict = page.getByRole("region", { name: /^The write of Worker \d was refused$/ });
  await verdict.waitFor();
  await noSidewaysScroll(page);
  await picture(page, `${name}-refused`);

  const own = digits(await page.locator("#verdict-token").innerText());
  const newest = digits(await page.locator("#verdict-newest").innerText());
  assert.ok(own < newest, "the refused token is the older one");
  await page.getByRole("log").getByText(/^Worker \d took over from the dead Worker \d/).waitFor();

  await isOver(page);
  const holds = await drawnHolds(page);
  assert.equal(holds.length, 4);
  assertTurns(holds);
  const killed = holds.findIndex(({ wasKilled }) => wasKilled);
  assert.equal(holds[killed].token, own);
  assert.ok(holds[killed + 1].token > own, "the next holder has a higher token");
  await noSidewaysScroll(page);
  await picture(page, `${name}-over`);
}

function assertTurns(holds) {
  for (const [index, later] of holds.slice(1).entries()) {
    assert.ok(holds[index].from < holds[index].to, "a hold ends after it began");
    assert.ok(holds[index].to <= later.from, `never two holders at once: ${JSON.stringify(holds)}`);
  }
  assertRising(holds.map(({ token }) => token));
}

function assertRising(tokens) {
  for (const [index, later] of tokens.slice(1).entries()) {
    assert.ok(Number.isSafeInteger(later) && tokens[index] < later, `tokens only rise: ${tokens}`);
  }
}

async function post(path) {
  const response = await fetch(new URL(path, url), { method: "POST" });
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
}

function digits(text) {
  return Number(text.replace(/\D/g, ""));
}
