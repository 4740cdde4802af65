/**
 * Tests the page's right to the gateway: a token for the names of its run, for minutes, and for
 * nothing else.
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { isOver, open, required, url, VISITORS } from "./visit.mjs";

const gateway = new URL(required("EDGELATCH_TEST_URL"));
const whole = required("EDGELATCH_TEST_TOKEN");

test("the page sends requests with a token for the names of its run only", async () => {
  const visit = await open(VISITORS[0]);
  const { asked, loaded, lent } = watch(visit.page);
  await killOne(visit.page);
  await isOver(visit.page);
  assert.equal(lent.length, 1, "one token lasts for the whole run");
  const { token, key } = await (await lent[0]).json();
  assert.ok(asked.length > 0, "the page has asked the gateway itself");
  assert.ok(asked.every(({ authorization }) => authorization === `Bearer ${token}`), "by this token and no other");
  const texts = await Promise.all(loaded.map((response) => response.text().catch(() => "")));
  assert.ok(texts.length > 0 && !texts.some((text) => text.includes(whole)), "the whole token comes nowhere near the page");
  await visit.end();

  const { prefix, maxLeaseMs, exp, ...others } = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
  assert.deepEqual([key.startsWith(prefix), prefix.endsWith(":"), maxLeaseMs, others], [true, true, 100, {}], "the least right");
  assert.ok(exp * 1000 < Date.now() + 10 * 60_000, "it ends in minutes");
  for (const command of [["GET", key], ["HGETALL", key], ["EVAL", "return 1", 1, key], ["DEL", key]]) {
    assert.equal((await send(token, command)).status, 403, command.join(" "));
  }
  assert.equal((await send(whole, ["GET", `${key}:nothing`])).status, 200);

  // Sends the page's request about other names, also about those of a run whose name has the same
  // beginning.
  const [short, long] = await Promise.all(["a", "ab"].map(async (run) => (await lend(run)).json()));
  const inspect = (name) => JSON.parse(asked[0].body).map((word) => (typeof word === "string" ? word.replaceAll(key, name) : word));
  assert.equal((await send(short.token, inspect(short.key))).status, 200);
  assert.equal((await send(long.token, inspect(long.key))).status, 200);
  assert.equal((await send(short.token, inspect(long.key))).status, 403);
  assert.equal((await send(long.token, inspect(short.key))).status, 403);
  assert.equal((await send(short.token, inspect("demo:once"))).status, 403);
});

test("a token that is about to end is not begun with: the page gets the next one", async () => {
  const visit = await open(VISITORS[0]);
  const { lent } = watch(visit.page);
  await visit.page.route(/\/api\/token/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), livesMs: 30_000 } });
  });
  await killOne(visit.page);
  await isOver(visit.page);
  assert.ok(lent.length > 1, "each look had a token of its own");
  await visit.end();
});

test("without a token the page counts by itself when the dead holder's lease ends", async () => {
  const visit = await open(VISITORS[0]);
  await visit.page.route(/\/api\/token/, (route) => route.fulfill({ json: null }));
  await killOne(visit.page);
  await isOver(visit.page);
  await visit.page.getByText(/^The lease of Worker \d expired\.$/).waitFor();
  await visit.end();
});

test("the Worker signs by the lines of the documentation", async () => {
  const [file, page] = await Promise.all(
    ["www/api/scoped-token.js", "docs/scoped-tokens.md"].map((path) => readFile(new URL(`../../${path}`, import.meta.url), "utf8")),
  );
  const code = file.slice(file.indexOf("\n") + 1);
  assert.ok(code.includes("HMAC") && page.includes(code), "they are the same");
});

/**
 * Records the page's modules, the tokens that it gets, and the tokens with which it sends requests
 * to the gateway.
 */
function watch(page) {
  const [asked, loaded, lent] = [[], [], []];
  page.on("request", (request) => {
    const { origin, pathname } = new URL(request.url());
    if (origin === gateway.origin && request.method() === "POST") {
      asked.push({ authorization: request.headers().authorization, body: request.postData() });
    }
    // A response that a route has changed is visible to the page only.
    if (pathname === "/api/token") lent.push(request.response());
  });
  page.on("response", (response) => {
    if (!/\/api\/contend/.test(response.url())) loaded.push(response);
  });
  return { asked, loaded, lent };
}

/** Starts two contenders and kills the first holder. */
async function killOne(page) {
  await page.getByRole("radio", { name: "2" }).check();
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("button", { name: /^Kill Worker/ }).first().press("Enter");
}

function lend(run) {
  return fetch(new URL(`/api/token?run=${run}`, url), { method: "POST" });
}

function send(token, command) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return fetch(gateway, { method: "POST", headers, body: JSON.stringify(command) });
}
