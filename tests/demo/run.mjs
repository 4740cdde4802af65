/**
 * The demo as a visitor meets it: the Worker's answers, and the page in a browser.
 *
 * Environment: EDGELATCH_DEMO_URL (where the demo runs), EDGELATCH_TOOLS (a `node_modules` with playwright-core),
 * CHROMIUM (the browser's program), EDGELATCH_SCREENSHOTS (a folder, if pictures are wanted).
 *
 * Waits for what must happen, never for time to pass; says nothing about how long anything takes.
 */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

const url = required("EDGELATCH_DEMO_URL");
const { chromium } = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"))("playwright-core");
const pictures = process.env.EDGELATCH_SCREENSHOTS;

/** Longest time for one thing to happen on a slow machine: a lease, a hold and a few requests fit in many times. */
const PATIENCE_MS = 90_000;

let browser;

before(async () => {
  if (pictures) mkdirSync(pictures, { recursive: true });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
});

after(() => browser?.close());

test("the Worker refuses bad input with a reason", async () => {
  const bad = [
    "once", "once?id=", "once?id=A", "once?id=a&id=b", `once?id=${"a".repeat(33)}`, "once?id=%00",
    "contend?id=a&run=r&leaseMs=3000", "contend?id=a&run=r&leaseMs=3000&holdMs=1e3",
    "contend?id=a&run=r&leaseMs=499&holdMs=1000", "contend?id=a&run=r&leaseMs=3000&holdMs=15001",
    "contend?id=a&run=a:b&leaseMs=3000&holdMs=1000", "write?run=r&token=0&value=a", "write?run=r&token=-1&value=a",
    "write?run=r&token=9007199254740992&value=a", "write?run=r&token=1.5&value=a", "write?run=r&token=1&value=%20",
  ];
  for (const path of bad) {
    const response = await fetch(new URL(`/api/${path}`, url), { method: "POST" });
    const { error } = await response.json();
    assert.equal(response.status, 400, path);
    assert.equal(error.code, "bad-input", path);
    assert.match(error.message, /^"[a-zA-Z]+" must be /, path);
  }
  assert.equal((await fetch(new URL("/api/state", url))).status, 400);
  assert.equal((await fetch(new URL("/api/once?id=a", url))).status, 405);
  assert.equal((await fetch(new URL("/api/nothing", url))).status, 404);
});

test("the Worker's own code is not served", async () => {
  for (const path of ["/worker.js", "/api/once.js", "/api/redis.js", "/.assetsignore", "/_headers"]) {
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
  assert.equal(await page.locator("#fact-holder").innerText(), "nobody");
  await picture(page, "turns-over");
  await visit.end();
});

const visitors = [
  { name: "desktop", viewport: { width: 1200, height: 900 }, colorScheme: "light" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "dark", isMobile: true, hasTouch: true },
  { name: "small-phone", viewport: { width: 360, height: 640 }, colorScheme: "light", reducedMotion: "reduce" },
];
for (const { name, ...context } of visitors) {
  test(`a killed holder is succeeded, and its late write refused (${name})`, async () => {
    const visit = await open(context);
    await killAndWriteLate(visit.page, name);
    await visit.end();
  });
}

/** All of it by keyboard: what works with a key works with a finger. */
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

/** The holds as they are drawn, in the order of time. A killed one lasts until its lease is over. */
async function drawnHolds(page) {
  const holds = await page.locator(".lane:has(.bar.hold)").evaluateAll((lanes) =>
    lanes.map((lane) => {
      const hold = lane.querySelector(".bar.hold").dataset;
      const wasKilled = lane.querySelector(".mark.kill") !== null;
      const end = wasKilled ? lane.querySelector(".bar.lease").dataset.to : hold.to;
      return { from: Number(hold.from), to: Number(end), token: Number(hold.token), wasKilled };
    }),
  );
  return holds.sort((a, b) => a.from - b.from);
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

async function isOver(page) {
  await page.getByRole("button", { name: "Start again" }).waitFor();
}

async function noSidewaysScroll(page) {
  const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(content <= view, `the page is ${content} px wide in a view of ${view} px`);
  const tight = await page.locator(".lane-head").evaluateAll(
    (heads) => heads.filter((head) => head.scrollWidth > head.clientWidth).length,
  );
  assert.equal(tight, 0, "everything in the head of a lane fits");
}

/** Opens the page; `end` closes it and checks that it complained of nothing and asked nobody else for anything. */
async function open(options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  const end = async () => {
    await context.close();
    assert.deepEqual(complaints, []);
  };
  return { page, end };
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
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

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}
