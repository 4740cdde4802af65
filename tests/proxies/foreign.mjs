/** Pages on other origins than the gateway's, in Chromium. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";

import { launch } from "../runtimes/browser.mjs";
import { startGateway, TOKEN } from "./servers.mjs";

/** An empty page at this host. */
async function servePage(host) {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end('<!doctype html><link rel="icon" href="data:,">'));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { origin: `http://${host}:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

/**
 * A proxy in front of the gateway that reports the status of each response: a browser hides from a
 * page the responses of another origin.
 */
async function openProxy(gateway) {
  const listeners = new Map();
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const sent = request(new URL(url, gateway.url), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
      listeners.get(url)?.(answer.statusCode);
    });
    incoming.pipe(sent);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** The status of the next response to a request for this path. */
    status: (path) => new Promise((resolve) => listeners.set(path, resolve)),
    close: () => (server.closeAllConnections(), server.close()),
  };
}

/** Ways of a page to send a request to this address without a preflight. They run in the page. */
const WAYS = {
  image: (address) => (new Image().src = address),
  script: (address) => document.head.append(Object.assign(document.createElement("script"), { src: address })),
  get: (address) => void fetch(address, { mode: "no-cors" }),
  head: (address) => void fetch(address, { mode: "no-cors", method: "HEAD" }),
  post: (address) => void fetch(address, { mode: "no-cors", method: "POST", body: "1" }),
  beacon: (address) => navigator.sendBeacon(address, "1"),
  form: (address) => {
    const [frame, form] = ["iframe", "form"].map((name) => document.body.appendChild(document.createElement(name)));
    frame.name = "frame";
    Object.assign(form, { action: address, method: "post", enctype: "text/plain", target: "frame" }).submit();
  },
  frame: (address) => document.body.append(Object.assign(document.createElement("iframe"), { src: address })),
  events: (address) => void new EventSource(address),
  // This one leaves the page, so it comes last.
  link: (address) => document.body.appendChild(Object.assign(document.createElement("a"), { href: address })).click(),
};

export function foreignPages() {
  // Filled before the tests.
  const env = {};
  before(async () => {
    // `near` is of the same site as the gateway, `far` of another one.
    [env.allowed, env.near, env.far] = await Promise.all(["localhost", "127.0.0.1", "localhost"].map(servePage));
    env.gateway = await startGateway("--allow-origin", env.allowed.origin, "--stream-limit", "0");
    env.proxy = await openProxy(env.gateway);
    env.browser = await launch();
  });
  after(async () => {
    await env.browser?.close();
    for (const server of [env.proxy, env.allowed, env.near, env.far]) server?.close();
    await env.gateway?.close();
  });
  allowedPage(env);
  refusedPage(env, "the same site", "near");
  refusedPage(env, "another site", "far");
}

/** Opens the page of this server, until the test is over. */
async function openPage(t, { browser }, { origin }) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(origin);
  return page;
}

function allowedPage(env) {
  test("an allowed one sends commands, also in the address, and reads responses and Retry-After", async (t) => {
    const page = await openPage(t, env, env.allowed);
    const seen = await page.evaluate(async ({ url, token }) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "upstash-response-format": "json" };
      const outcome = async (path, init) => {
        const response = await fetch(`${url}${path}`, init);
        const names = ["retry-after", "upstash-sync-token"].filter((name) => response.headers.has(name));
        return [response.status, await response.json(), ...names];
      };
      return [
        await outcome("/", { method: "POST", headers, body: '["SET","mine","1"]' }),
        await outcome("/get/mine", { headers }),
        await outcome("/set/mine", { method: "PUT", headers, body: "2" }),
        await outcome(`/get/mine?_token=${token}`),
        await outcome("/subscribe/channel", { headers }),
        await outcome("/", { method: "POST", body: '["PING"]' }),
      ];
    }, { url: env.gateway.url, token: TOKEN });
    assert.deepEqual(seen, [
      [200, { result: "OK" }, "upstash-sync-token"],
      [200, { result: "1" }, "upstash-sync-token"],
      [200, { result: "OK" }, "upstash-sync-token"],
      [200, { result: "2" }, "upstash-sync-token"],
      [503, { error: "the gateway has no room for this request at present; see Retry-After" }, "retry-after"],
      [401, { error: "WRONGPASS invalid or missing auth token" }],
    ]);
    await env.gateway.run("DEL", "mine");
  });
}

function refusedPage(env, where, server) {
  test(`one of ${where} that is not allowed reads nothing, even with a token`, async (t) => {
    const page = await openPage(t, env, env[server]);
    const read = await page.evaluate(async ({ url, token }) => {
      const headers = { authorization: `Bearer ${token}` };
      const requests = [
        ["/", { method: "POST", headers, body: '["SET","evil","1"]' }],
        ["/set/evil/1", { headers }],
        ["/set/evil", { method: "PUT", headers, body: "1" }],
        [`/set/evil/1?_token=${token}`],
        [`/?_token=${token}`, { method: "POST", body: '["SET","evil","1"]' }],
        ["/healthz"],
      ];
      const reading = requests.map(([path, init]) => fetch(`${url}${path}`, init).then((response) => response.text(), (error) => error.name));
      return Promise.all(reading);
    }, { url: env.gateway.url, token: TOKEN });
    assert.deepEqual(read, Array(6).fill("TypeError"));
    assert.equal(await env.gateway.run("DBSIZE"), 0);
  });

  test(`one of ${where} that is not allowed changes nothing by requests that need no preflight`, async (t) => {
    const page = await openPage(t, env, env[server]);
    for (const [name, send] of Object.entries(WAYS)) {
      const path = `/set/evil/${name}?_token=${TOKEN}`;
      const answered = env.proxy.status(path);
      await page.evaluate(`void (${send})(${JSON.stringify(env.proxy.url + path)})`);
      assert.equal(await answered, 403, name);
    }
    assert.equal(await env.gateway.run("DBSIZE"), 0);
    // The gateway relies on the headers of the browser: it executes the same request of another
    // program.
    assert.equal((await fetch(`${env.proxy.url}/set/evil/none?_token=${TOKEN}`)).status, 200);
    assert.equal(await env.gateway.run("DEL", "evil"), 1);
  });
}
