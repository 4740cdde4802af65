/** A visit to the demo's page in a browser, and functions that read its drawing. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before } from "node:test";

export const url = required("EDGELATCH_DEMO_URL");
/** The only other origin to which the page may send requests. */
const gateway = new URL(required("EDGELATCH_TEST_URL")).origin;
const { chromium } = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"))("playwright-core");
const pictures = process.env.EDGELATCH_SCREENSHOTS;

/**
 * The longest time for one event on a slow machine: many times as long as a lease, a hold and a few
 * requests.
 */
const PATIENCE_MS = 90_000;

let browser;

/** The visitors and their browsers. */
export const VISITORS = [
  { name: "desktop", viewport: { width: 1200, height: 900 }, colorScheme: "light" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "dark", isMobile: true, hasTouch: true },
  { name: "small-phone", viewport: { width: 360, height: 640 }, colorScheme: "light", reducedMotion: "reduce" },
];

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

/**
 * Opens the page, or another one of the demo's; `end` closes it and checks that it reported no
 * error but those that `isExpected` accepts, and sent no request to another origin.
 */
export async function open({ name, ...options }, isExpected = () => false, path = "/") {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    // The response about a script that a new Redis does not know yet; the package then sends the
    // script's text.
    const isNews = message.location().url.startsWith(gateway) && /status of 400/.test(message.text());
    const isComplaint = ["error", "warning"].includes(message.type()) && !isNews && !isExpected(message.text());
    if (isComplaint) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== new URL(url).origin && origin !== gateway) complaints.push(`asked ${request.url()}`);
  });
  await page.goto(new URL(path, url).href);
  const end = async () => {
    await context.close();
    assert.deepEqual(complaints, []);
  };
  return { page, end };
}

/** Waits for the end of a run, and returns the verdict of Redis. */
export async function isOver(page) {
  await page.getByRole("button", { name: "Start again" }).waitFor();
  const finding = page.getByRole("status");
  assert.equal(await finding.getAttribute("data-kept"), "true", await finding.innerText());
  return finding.innerText();
}

export async function noSidewaysScroll(page) {
  const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(content <= view, `the page is ${content} px wide in a view of ${view} px`);
  const tight = await page.locator(".lane-head").evaluateAll(
    (heads) => heads.filter((head) => head.scrollWidth > head.clientWidth).length,
  );
  assert.equal(tight, 0, "everything in the head of a lane fits");
}

/**
 * Returns the holds as they are drawn, in the order of time. A killed hold lasts until its lease is
 * over.
 */
export async function drawnHolds(page) {
  const holds = await page.locator(".lane").evaluateAll((lanes) =>
    lanes.flatMap((lane) => {
      const name = lane.querySelector(".lane-name").textContent;
      const wasKilled = lane.querySelector(".mark.kill") !== null;
      return [...lane.querySelectorAll(".bar.hold")].map(({ dataset }) => {
        const to = wasKilled ? lane.querySelector(".bar.lease").dataset.to : dataset.to;
        const token = Number(dataset.token);
        return { name, as: dataset.as, from: Number(dataset.from), to: Number(to), token, wasKilled };
      });
    }),
  );
  return holds.sort((a, b) => a.from - b.from);
}

export async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}
