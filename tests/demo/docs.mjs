/** Tests that the demo's Worker serves the documentation site, under its policies. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open, url, VISITORS } from "./visit.mjs";

test("a visitor goes from the demo to the documentation, searches it, and comes back", async () => {
  const visit = await open(VISITORS[0]);
  const { page } = visit;
  await page.getByRole("link", { name: "Documentation" }).click();
  await page.waitForURL(/\/docs\/$/);
  await page.getByRole("link", { name: "Concepts" }).first().click();
  await page.getByRole("heading", { name: "When a reply is lost" }).waitFor();
  await page.locator(".VPNavBarSearch button").click();
  await page.locator("#localsearch-input").fill("scoped token");
  await page.locator("#localsearch-list a").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Demo" }).first().click();
  await page.getByRole("heading", { name: "One Redis, many Workers" }).waitFor();
  await visit.end();
});

test("the documentation is loaded from its address, and allows no other origin", async () => {
  const response = await fetch(new URL("/docs/errors", url));
  assert.equal(response.status, 200);
  const policy = response.headers.get("content-security-policy");
  assert.equal(policy, "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  const [, own] = /<meta http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(await response.text());
  assert.match(own, /^default-src 'self'; object-src 'none'; script-src 'self' ('sha256-[A-Za-z0-9+/=]+' ?)+; /);
  const visit = await open(VISITORS[1], () => false, "/docs/errors");
  await visit.page.getByRole("heading", { name: /^Errors/, level: 1 }).waitFor();
  await visit.end();
});
