/** Tests the site's pages in each browser: search, dark mode, and the width of a phone. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { findOverlaps, measure } from "./picture.mjs";
import { packageOf, pages, required, serveSite } from "./site.mjs";

/** The longest time for one event on a slow machine. */
const PATIENCE_MS = 90_000;
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

const isFull = process.env.EDGELATCH_EXTENT === "full";
const pictures = process.env.EDGELATCH_SCREENSHOTS;

/** The address of the site's home page. */
let address;
let server;
before(async () => {
  ({ address, server } = await serveSite());
});
after(() => server?.close());

const BROWSERS = {
  Chromium: { browser: "chrome", executablePath: required("CHROMIUM"), args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] },
  ...(isFull && { Firefox: { browser: "firefox", executablePath: required("FIREFOX") } }),
};

/** The pages that a full run takes pictures of. */
const PICTURED = ["", "start/node", "concepts", "objects", "operations", "comparison", "errors", "reliability", "api/edgelatch/interfaces/Lock"];

for (const [name, options] of Object.entries(BROWSERS)) {
  describe(name, () => {
    let browser;
    before(async () => {
      const { default: puppeteer } = await packageOf("puppeteer-core/lib/puppeteer/puppeteer-core.js");
      browser = await puppeteer.launch({ ...options, headless: true, timeout: PATIENCE_MS, protocolTimeout: PATIENCE_MS });
    });
    after(() => browser?.close());

    test("search finds a page by a word of its text", async () => {
      const visit = await open(browser, "", DESKTOP);
      await visit.page.locator(".VPNavBarSearch button").click();
      await visit.page.locator("#localsearch-input").fill("tombstone");
      await visit.page.locator("#localsearch-list a").click();
      await visit.page.waitForFunction(() => /tombstone/i.test(document.querySelector(".vp-doc")?.textContent ?? ""));
      await visit.end();
    });

    test("the switch makes pages dark, and they stay dark", async () => {
      const visit = await open(browser, "errors", DESKTOP, "light");
      assert.ok((await measure(visit.page)).light > 0.8, "light");
      await visit.page.locator(".VPNavBarAppearance .VPSwitchAppearance").click();
      await visit.page.waitForFunction(() => document.documentElement.classList.contains("dark"));
      await visit.end();
      const again = await open(browser, "overview", DESKTOP, "dark");
      assert.ok((await measure(again.page)).light < 0.3, "dark");
      await again.end();
    });

    test("every page fits a phone", async () => {
      // Pages of the types are alike: one of them suffices, except for Chromium in a full run.
      const visitsAll = isFull && name === "Chromium";
      const visited = pages.filter(({ path }) => visitsAll || !path.startsWith("api/") || path.endsWith("/Lease"));
      assert.ok(visited.length > 35, `${visited.length} pages`);
      const visit = await open(browser, "", PHONE);
      const wide = [];
      for (const { path } of visited) {
        await visit.go(path);
        const width = await visit.page.evaluate(() => document.documentElement.scrollWidth);
        if (width > PHONE.width) wide.push(`${path}: ${width} px`);
      }
      assert.deepEqual(wide, []);
      await visit.end();
    });

    test("no text of a picture or chart covers another one or leaves it", async () => {
      const visit = await open(browser, "", PHONE);
      let texts = 0;
      for (const { path } of pages.filter(({ html }) => /<figure class="picture"|<div class="chart"/.test(html))) {
        await visit.go(path);
        const { count, faults } = await visit.page.evaluate(findOverlaps);
        assert.deepEqual(faults, [], path);
        texts += count;
      }
      assert.ok(texts > 200, `${texts} texts`);
      await visit.end();
    });

    if (isFull) test("pictures: each page is light or dark as chosen, and has text", () => takePictures(browser, name));
  });
}

async function takePictures(browser, name) {
  for (const path of PICTURED) {
    for (const [kind, viewport, theme] of [["desktop", DESKTOP, "light"], ["dark", DESKTOP, "dark"], ["phone", PHONE, "light"]]) {
      const visit = await open(browser, path, viewport, theme);
      const image = await visit.page.screenshot();
      const { light, ink } = await measure(visit.page);
      assert.ok(ink > 0.005, `${path} shows something in ${name}: ${ink}`);
      assert.ok(theme === "dark" ? light < 0.4 : light > 0.7, `${path} is ${theme} in ${name}: ${light}`);
      if (pictures) {
        mkdirSync(pictures, { recursive: true });
        writeFileSync(join(pictures, `site-${name}-${kind}-${path.replaceAll("/", "-") || "home"}.png`), image);
      }
      await visit.end();
    }
  }
}

/**
 * Opens a page; `go` opens another one in the same tab, and `end` closes the tab and checks that no
 * page reported an error.
 */
async function open(browser, path, viewport, theme = "auto") {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.message}`));
  await page.setViewport(viewport);
  await page.evaluateOnNewDocument((chosen) => {
    // Firefox calls this for empty documents too, which have no storage.
    if (location.protocol === "http:") localStorage.setItem("vitepress-theme-appearance", chosen);
  }, theme);
  const go = async (to) => {
    await page.goto(new URL(to, address), { waitUntil: "load" });
    // VitePress has taken over the page's markup.
    const isLive = () => document.querySelector("#app")?.__vue_app__ !== undefined;
    await page.waitForFunction(isLive).catch((error) => assert.fail(`${page.url()}: ${error.message}`));
  };
  await go(path);
  const end = async () => {
    await page.close();
    assert.deepEqual(complaints, []);
  };
  return { page, go, end };
}
