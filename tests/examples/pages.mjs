/** Programs with pages: a draft that two people edit, Next.js, SvelteKit. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { launch } from "../runtimes/browser.mjs";
import { until } from "../runtimes/check.mjs";
import { openFront } from "../runtimes/front.mjs";
import { newClient, required } from "../runtimes/project.mjs";
import { EXAMPLES, GATEWAY, call, stage, start } from "./kit.mjs";
import { startWorker } from "./workers.mjs";

/** A page that takes longer hangs. This is no statement about how long it should take. */
const PATIENCE_MS = 600_000;

async function browserDraft(t, workshop) {
  const front = await openFront(GATEWAY.url);
  t.after(() => front.close());
  const env = { GATEWAY_URL: front.url, SCOPE_KEY: required("EDGELATCH_TEST_SCOPE_KEY") };
  const server = await start(t, workshop, await stage(workshop, "browser-draft"), { env });
  const address = await server.address();
  const browser = await launch();
  t.after(() => browser.close());
  const [ada, bob] = await Promise.all([1, 2].map(() => openDraft(browser, address)));

  await ada.edit();
  await ada.says("You are editing.");
  await bob.edit();
  await bob.says("Waiting: another person is editing.");
  assert.ok(await bob.page.locator("textarea").isDisabled());
  await ada.write("Dear Bob");
  await until(async () => (await call("GET", `${address}/draft`)).body === "Dear Bob", "the text is saved");
  await ada.page.click("#done");
  await ada.says("Saved.");

  await bob.says("You are editing.");
  assert.equal(await bob.page.inputValue("textarea"), "Dear Bob");
  await bob.write("Dear Ada");
  await until(async () => (await call("GET", `${address}/draft`)).body === "Dear Ada", "the newer text is saved");
  // The browser may report a request later than the server has handled it.
  await until(async () => ada.tokens.length > 0 && bob.tokens.length > 0, "the browser reports both requests");
  // A request that Ada's page sent before arrives late.
  const late = await call("PUT", `${address}/draft`, { headers: { "fencing-token": ada.tokens[0] }, body: "Dear Bob" });
  assert.deepEqual([late.status, (await call("GET", `${address}/draft`)).body], [409, "Dear Ada"]);
  assert.ok(Number(bob.tokens[0]) > Number(ada.tokens[0]));

  // Bob closes the page without a word, and his lease ends.
  await ada.edit();
  await ada.says("Waiting: another person is editing.");
  await bob.context.close();
  await ada.says("You are editing.");

  const recipe = await readFile(join(EXAMPLES, "browser-draft/scoped-token.js"), "utf8");
  assert.ok((await readFile(join(EXAMPLES, "../docs/scoped-tokens.md"), "utf8")).includes(recipe), "the recipe of docs/scoped-tokens.md");
}

/** Opens the page in a browser profile of its own. `tokens` has those of its saves. */
async function openDraft(browser, address) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const tokens = [];
  page.on("request", (request) => {
    if (request.method() === "PUT") tokens.push(request.headers()["fencing-token"]);
  });
  await page.goto(address);
  return {
    context,
    page,
    tokens,
    edit: () => page.click("#edit"),
    write: (text) => page.fill("textarea", text),
    says: (text) => until(async () => (await page.textContent("output")) === text, `the page says "${text}"`),
  };
}

async function nextjs(t, workshop) {
  const server = await start(t, workshop, await stage(workshop, "nextjs"), { env: { NEXT_TELEMETRY_DISABLED: "1" } });
  const address = await server.address();
  const write = (route) => call("POST", `${address}/api/${route}`);
  const lease = await (await newClient(GATEWAY)).lock("next-report").acquire();
  const routes = ["report", "report-edge"];
  for (const route of routes) assert.equal((await write(route)).status, 409, route);
  await lease.release();
  let newest = lease.token;
  for (const route of routes) {
    const { status, body } = await write(route);
    assert.ok(status === 200 && body.token > newest, `${route}: ${status} ${JSON.stringify(body)}`);
    newest = body.token;
  }
}

async function sveltekit(t, workshop) {
  const { address } = await startWorker(t, workshop, "sveltekit");
  // As the form of the page sends it: SvelteKit refuses forms of other origins.
  const publish = () => call("POST", address, { headers: { accept: "text/html", origin: address, "content-type": "application/x-www-form-urlencoded" }, body: "" });
  const lease = await (await newClient(GATEWAY)).lock("publish").acquire();
  const busy = await publish();
  assert.deepEqual([busy.status, /Another editor is publishing/.test(busy.body)], [503, true], busy.body);
  await lease.release();
  let published;
  await until(async () => (published = await publish()).status !== 503, "the page is published");
  const [, token] = /Published under token (\d{16})/.exec(published.body) ?? [];
  assert.ok(published.status === 200 && Number(token) > lease.token, published.body);
}

export const examples = [
  { name: "browser-draft", what: "one person edits while the other waits, and a late text is rejected", extent: "full", run: browserDraft },
];

/** These need the packages of the bundlers. */
export const frameworks = [
  { name: "nextjs", what: "a route in Node and one at the edge share a lock", extent: "full", run: nextjs },
  { name: "sveltekit", what: "a form action waits for a lock, and says when it has waited too long", extent: "full", run: sveltekit },
];
