/**
 * The gateway behind nginx and Caddy as Debian has them, and called by pages on other origins in
 * Chromium.
 *
 * Environment: EDGELATCH_GATEWAY (the program), EDGELATCH_TOOLS (a `node_modules` with
 * `@upstash/redis` and playwright-core), CHROMIUM (the browser).
 */

import assert from "node:assert/strict";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { required } from "../runtimes/project.mjs";
import { allowedChunks, ambiguous, post, talk } from "./exchange.mjs";
import { foreignPages } from "./foreign.mjs";
import { example, scopedToken, startCaddy, startGateway, startNginx, TOKEN } from "./servers.mjs";

const { Redis } = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"))("@upstash/redis");

const authorization = `Bearer ${TOKEN}`;
const host = (gateway) => new URL(gateway.url).host;

const PROXIES = {
  "nginx with its defaults": (gateway) => startNginx(`location / { proxy_pass http://${host(gateway)}; }`),
  "nginx as in the README": async (gateway) => startNginx(await example("nginx", gateway)),
  "Caddy as in the README": async (gateway) => startCaddy(await example("caddyfile", gateway)),
};

for (const [name, start] of Object.entries(PROXIES)) describe(name, () => behind(name, start));
describe("a page on another origin", foreignPages);

/** The tests behind one proxy. */
function behind(name, start) {
  const hasDefaults = name.includes("defaults");
  // Filled before the tests.
  const env = {};
  before(async () => {
    // An address has one stream of clients with scoped tokens.
    env.gateway = await startGateway("--trusted-proxies", "1", "--client-streams", "1", "--address-clients", "1");
    env.proxy = await start(env.gateway);
    env.redis = new Redis({ url: env.proxy.url, token: TOKEN, enableAutoPipelining: false, retry: false });
    env.get = (path, init) => fetch(`${env.proxy.url}${path}`, { ...init, headers: { authorization } });
  });
  after(async () => {
    await env.proxy?.close();
    await env.gateway?.close();
  });
  commands(env);
  streams(env);
  ambiguity(env);
  limits(env, hasDefaults);
}

function commands(env) {
  test("commands, pipelines, transactions and refusals pass", async () => {
    const key = `key:${crypto.randomUUID()}`;
    assert.equal(await env.redis.set(key, "é \u{1f512}"), "OK");
    assert.equal(await env.redis.get(key), "é \u{1f512}");
    assert.deepEqual(await env.redis.pipeline().set(key, 1).incr(key).exec(), ["OK", 2]);
    assert.deepEqual(await env.redis.multi().incr(key).incr(key).exec(), [3, 4]);
    await assert.rejects(env.redis.lpush(key, 1), /WRONGTYPE/);
    await assert.rejects(new Redis({ url: env.proxy.url, token: "wrong" }).get(key), /WRONGPASS/);
  });

  test("a path arrives as it was sent", async () => {
    const key = `key:${crypto.randomUUID()}`;
    for (const [path, words] of [
      [`/set/${key}%2Fa%20b+c/v`, [`${key}/a b+c`, "v"]],
      [`/set/${key}//`, undefined],
      [`/set/${key}/`, [key, ""]],
      [`/set/${key}/%C3%A9%3F%23`, [key, "é?#"]],
    ]) {
      const { result } = await (await env.get(path)).json();
      if (words === undefined) assert.equal(result, undefined, `${path} has a word too many`);
      else assert.equal(await env.gateway.run("GET", words[0]), words[1], path);
    }
  });
}

function streams(env) {
  test("messages come through a stream while it is open", async () => {
    const channel = `channel:${crypto.randomUUID()}`;
    const leaving = new AbortController();
    const response = await env.get(`/subscribe/${channel}`, { signal: leaving.signal });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    const reach = async (text) => {
      while (!seen.includes(text)) {
        const { value, done } = await reader.read();
        assert.ok(!done, `the stream ended after ${seen}`);
        seen += value;
      }
    };
    await reach(`data: subscribe,${channel},1\n\n`);
    for (const message of ["one", "two"]) {
      assert.equal(await env.gateway.run("PUBLISH", channel, message), 1);
      await reach(`data: message,${channel},${message}\n\n`);
    }
    leaving.abort();
    // The proxy closes its request to the gateway once the client has left.
    while ((await env.gateway.run("PUBLISH", channel, "late")) > 0);
  });
}

function ambiguity(env) {
  test("a request that two parsers interpret differently runs nothing that was not requested", async () => {
    for (const [form, bytes] of Object.entries(ambiguous())) {
      // The last request closes the connection, unless the first one did. The body of the first may
      // contain some of them, so there are several.
      const last = post(["ECHO", "last"], "Connection: close");
      const answers = await talk(env.proxy.port, bytes + last.repeat(8));
      // At most three responses: to the first request, to the one after it, and to the last.
      assert.ok(answers.length <= 3, `${form}: ${JSON.stringify(answers)}`);
      assert.equal(await env.gateway.run("GET", "canary"), null, form);
      // No byte of it is left on a connection between proxy and gateway that is kept open.
      const echoes = await Promise.all([1, 2, 3].map((number) => env.redis.echo(`${form} ${number}`)));
      assert.deepEqual(echoes, [1, 2, 3].map((number) => `${form} ${number}`));
    }
  });

  test("chunks with extensions and trailers are one request", async () => {
    assert.deepEqual(await talk(env.proxy.port, allowedChunks), [{ status: 200, body: '{"result":"PONG"}' }]);
  });
}

function limits(env, hasDefaults) {
  test("a value of 1.1 MB passes unless nginx has its default", async () => {
    const key = `key:${crypto.randomUUID()}`;
    const setting = env.redis.set(key, "v".repeat(1_100_000));
    if (hasDefaults) {
      // nginx' own page: the client cannot read it as JSON.
      await assert.rejects(setting, /413 Request Entity Too Large|JSON|fetch failed/);
      assert.equal(await env.gateway.run("EXISTS", key), 0);
    } else {
      assert.equal(await setting, "OK");
      assert.equal(await env.gateway.run("STRLEN", key), 1_100_000);
    }
  });

  test("limits are those of the address that the proxy has seen", async () => {
    const open = async (subject, from, forwarded = {}) => {
      const token = await scopedToken(subject);
      const headers = { authorization: `Bearer ${token}`, ...forwarded };
      const options = { localAddress: from, headers, port: env.proxy.port, host: "127.0.0.1", path: "/subscribe/redisson_lock__channel:%7Bapp:a%7D" };
      const { promise, resolve, reject } = Promise.withResolvers();
      const sent = request(options, resolve).on("error", reject).end();
      const response = await promise;
      return { status: response.statusCode, leave: () => sent.destroy() };
    };
    const first = await open("first", "127.0.0.1");
    assert.equal(first.status, 200);
    // Another client at the same address, which names others.
    for (const forged of ["192.0.2.1", "192.0.2.1, 192.0.2.2"]) {
      assert.equal((await open("second", "127.0.0.1", { "x-forwarded-for": forged })).status, hasDefaults ? 200 : 429, forged);
      if (hasDefaults) break;
    }
    if (!hasDefaults) {
      const elsewhere = await open("third", "127.0.0.2");
      assert.equal(elsewhere.status, 200);
      elsewhere.leave();
    }
    first.leave();
  });
}
