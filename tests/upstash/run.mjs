/**
 * Tests Upstash's official clients, unmodified, against the project's gateway, and the npm package
 * beside them on the same Redis.
 *
 * Environment: EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (the gateway), EDGELATCH_TOOLS (a
 * `node_modules` with `@upstash/redis` and `@upstash/lock`), EDGELATCH_TARBALL (the output of
 * `npm pack`).
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { newProject, removeProjects, required } from "../runtimes/project.mjs";

const require = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"));
const { Redis } = require("@upstash/redis");
const { Lock } = require("@upstash/lock");

const [url, token] = [required("EDGELATCH_TEST_URL"), required("EDGELATCH_TEST_TOKEN")];
const redis = new Redis({ url, token });

/** A key that no other test uses. */
let key;
beforeEach(() => (key = `upstash:${crypto.randomUUID()}`));

describe("commands", () => {
  test("texts, numbers and objects come back as they were", async () => {
    for (const value of ["text", "", "é \u{1f512} \0 \r\n", "OK", 5, -1.5, true, { a: [1, null, "x"] }, [1, 2]]) {
      assert.equal(await redis.set(key, value), "OK");
      assert.deepEqual(await redis.get(key), value);
    }
    assert.equal(await redis.get(`${key}:none`), null);
  });

  test("options of a command are understood", async () => {
    assert.equal(await redis.set(key, "a", { nx: true, px: 60_000 }), "OK");
    assert.equal(await redis.set(key, "b", { nx: true }), null);
    const left = await redis.pttl(key);
    assert.ok(left > 0 && left <= 60_000);
    assert.equal(await redis.set(key, "b", { xx: true, get: true }), "a");
  });

  test("each type of Redis arrives as its type", async () => {
    assert.equal(await redis.hset(key, { one: 1, two: "zwei" }), 2);
    assert.deepEqual(await redis.hgetall(key), { one: 1, two: "zwei" });
    assert.deepEqual(await redis.hmget(key, "one", "none"), { one: 1, none: null });
    assert.equal(await redis.rpush(`${key}:list`, "a", "b"), 2);
    assert.deepEqual(await redis.lrange(`${key}:list`, 0, -1), ["a", "b"]);
    assert.equal(await redis.sadd(`${key}:set`, "m"), 1);
    assert.deepEqual(await redis.smembers(`${key}:set`), ["m"]);
    assert.equal(await redis.zadd(`${key}:sorted`, { score: 1.5, member: "m" }), 1);
    assert.deepEqual(await redis.zrange(`${key}:sorted`, 0, -1, { withScores: true }), ["m", 1.5]);
    assert.equal(await redis.incrby(`${key}:number`, 41), 41);
    assert.equal(await redis.type(`${key}:set`), "set");
    assert.deepEqual(await redis.scan(0, { match: `${key}:none*`, count: 10_000 }), ["0", []]);
  });

  test("an error of Redis is an error of the client, with Redis' words", async () => {
    await redis.set(key, "text");
    await assert.rejects(redis.lpush(key, "a"), /WRONGTYPE Operation against a key holding the wrong kind of value/);
    await assert.rejects(redis.incr(key), /not an integer or out of range/);
  });

  test("a wrong token is refused", async () => {
    await assert.rejects(new Redis({ url, token: `${token}x` }).get(key), /WRONGPASS/);
  });
});

describe("encodings", () => {
  test("replies in base64, which the client requests, and in plain are the same", async () => {
    const plain = new Redis({ url, token, responseEncoding: false });
    await redis.set(key, "é \u{1f512}");
    assert.equal(await plain.get(key), await redis.get(key));
    assert.equal(await plain.set(key, "OK"), "OK");
    assert.equal(await redis.get(key), "OK");
  });

  test("every byte gets through in base64", async () => {
    const script = "local t={} for i=0,255 do t[#t+1]=string.char(i) end redis.call('set',KEYS[1],table.concat(t)) return #t";
    assert.equal(await redis.eval(script, [key], []), 256);
    const asked = { method: "POST", headers: { authorization: `Bearer ${token}`, "upstash-encoding": "base64" } };
    const response = await fetch(url, { ...asked, body: JSON.stringify(["GET", key]) });
    const { result } = await response.json();
    assert.deepEqual([...Buffer.from(result, "base64")], Array.from({ length: 256 }, (_, byte) => byte));
  });

  test("without automatic deserialization texts stay texts", async () => {
    const texts = new Redis({ url, token, automaticDeserialization: false });
    await texts.set(key, "5");
    assert.equal(await texts.get(key), "5");
  });
});

describe("read your writes", () => {
  // As in the client's own tests.
  test("each response has a new sync token, which the client sends with its next request", async (t) => {
    const client = new Redis({ url, token });
    const fetched = t.mock.method(globalThis, "fetch");
    const had = [client.readYourWritesSyncToken];
    for (const write of [
      () => client.set(key, 1),
      () => client.pipeline().incr(key).exec(),
      () => client.multi().incr(key).exec(),
      () => client.eval("return redis.call('INCR', KEYS[1])", [key], []),
    ]) {
      await write();
      had.push(client.readYourWritesSyncToken);
    }
    assert.equal(await client.get(key), 4);
    assert.ok(had.slice(1).every(Boolean) && new Set(had).size === 5, `each time a new one: ${had}`);
    const sent = fetched.mock.calls.map(({ arguments: [, { headers }] }) => headers["upstash-sync-token"]);
    assert.deepEqual(sent, had);
  });

  test("a client that does not want sync tokens has none", async () => {
    const client = new Redis({ url, token, readYourWrites: false });
    assert.equal(await client.set(key, 1), "OK");
    assert.equal(await client.get(key), 1);
  });
});

describe("plain requests", () => {
  const authorization = `Bearer ${token}`;
  const send = async (path, { headers, ...init } = {}) => fetch(`${url}${path}`, { ...init, headers: { authorization, ...headers } });
  const result = async (response) => (await response.json()).result;

  test("a command in the address is what the client sends in a body", async () => {
    assert.equal(await result(await send(`/set/${key}/bar/EX/100`)), "OK");
    assert.equal(await redis.get(key), "bar");
    const value = { a: ["/", "?", "&", "é"] };
    const query = new URLSearchParams({ PX: 60_000 });
    assert.equal(await result(await send(`/set/${key}?${query}`, { method: "POST", body: JSON.stringify(value) })), "OK");
    assert.deepEqual(await redis.get(key), value);
    const left = await redis.pttl(key);
    assert.ok(left > 0 && left <= 60_000);
    assert.equal(await result(await send(`/set/${encodeURIComponent(`${key}/ ?`)}/v`, { method: "PUT" })), "OK");
    assert.equal(await redis.get(`${key}/ ?`), "v");
    const { error } = await (await send(`/incr/${key}`)).json();
    assert.match(error, /not an integer/);
  });

  test("the token may be in the address", async () => {
    const query = new URLSearchParams({ _token: token });
    assert.equal(await result(await fetch(`${url}/set/${key}/v?${query}`)), "OK");
    assert.equal((await fetch(`${url}/get/${key}?_token=wrong`)).status, 401);
    assert.equal(await redis.get(key), "v");
  });

  test("bytes go in by a body and come out in base64 and in RESP2", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    assert.equal(await result(await send(`/set/${key}`, { method: "POST", body: bytes })), "OK");
    const encoded = await result(await send(`/get/${key}`, { headers: { "upstash-encoding": "base64" } }));
    assert.deepEqual([...Buffer.from(encoded, "base64")], [...bytes]);
    const raw = await send(`/get/${key}`, { headers: { "upstash-response-format": "resp2" } });
    assert.equal(raw.headers.get("content-type"), "application/octet-stream");
    const body = Buffer.from(await raw.arrayBuffer());
    assert.deepEqual(body, Buffer.concat([Buffer.from("$256\r\n"), bytes, Buffer.from("\r\n")]));
  });

  test("a value of 1.1 MB is stored and read", async () => {
    const value = "v".repeat(1_100_000);
    assert.equal(await redis.set(key, value), "OK");
    assert.equal(await redis.get(key), value);
    assert.equal(await redis.del(key), 1);
  });

  test("a request that is too large has an error with that reason", async () => {
    await assert.rejects(redis.set(key, "v".repeat(11_000_000)), /ERR max request size exceeded/);
    assert.equal(await redis.exists(key), 0);
  });
});

describe("many at once", () => {
  test("a pipeline has a reply to each command, also beside one that fails", async () => {
    const pipeline = redis.pipeline().set(key, "1").incr(key).get(`${key}:none`);
    assert.deepEqual(await pipeline.exec(), ["OK", 2, null]);
    const failing = redis.pipeline().set(key, "text").incr(key).get(key);
    const [set, incremented, got] = await failing.exec({ keepErrors: true });
    assert.deepEqual([set.result, got.result], ["OK", "text"]);
    assert.match(incremented.error, /not an integer/);
  });

  test("commands of one turn travel together", async () => {
    const automatic = new Redis({ url, token, enableAutoPipelining: true });
    const results = await Promise.all([automatic.set(key, "a"), automatic.append(key, "b"), automatic.append(key, "c")]);
    assert.deepEqual(results, ["OK", 2, 3]);
    assert.equal(automatic.pipelineCounter, 1);
  });

  test("a transaction is done as a whole", async () => {
    const transaction = redis.multi().set(key, 1).incrby(key, 4).get(key);
    assert.deepEqual(await transaction.exec(), ["OK", 5, 5]);
    await assert.rejects(redis.multi().set(key, 9).incr(key, "surplus").exec());
  });
});

describe("scripts", () => {
  const script = "return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1}";
  const sha = createHash("sha1").update(script).digest("hex");

  test("by text, by hash, loaded, listed", async () => {
    assert.deepEqual(await redis.eval(script, [key], ["a", 41]), [key, "a", 42]);
    assert.equal(await redis.scriptLoad(script), sha);
    assert.deepEqual(await redis.evalsha(sha, [key], ["b", 1]), [key, "b", 2]);
    assert.deepEqual(await redis.scriptExists(sha, "0".repeat(40)), [1, 0]);
    assert.deepEqual(await redis.evalRo("return redis.call('get', KEYS[1])", [key], []), null);
  });

  test("an unknown hash has its own error, after which the client's script object sends the text", async () => {
    const fresh = `return redis.call("set", KEYS[1], ARGV[1]) -- ${key}`;
    await assert.rejects(redis.evalsha(createHash("sha1").update(fresh).digest("hex"), [key], ["v"]), /NOSCRIPT/);
    const object = redis.createScript(fresh);
    assert.equal(await object.exec([key], ["first"]), "OK");
    assert.equal(await object.evalsha([key], ["second"]), "OK");
    assert.equal(await redis.get(key), "second");
  });
});

describe("messages", () => {
  test("a subscriber hears what is published, and nothing after it has left", async () => {
    const subscription = redis.subscribe(key);
    const received = [];
    const subscribed = new Promise((resolve) => subscription.on("subscribe", resolve));
    const messages = new Promise((resolve) => {
      subscription.on("message", (message) => received.push(message) === 3 && resolve());
    });
    await subscribed;
    for (const message of ["text", { of: ["json"] }, "with,commas,in it"]) assert.equal(await redis.publish(key, message), 1);
    await messages;
    assert.deepEqual(received, [
      { channel: key, message: "text" },
      { channel: key, message: { of: ["json"] } },
      { channel: key, message: "with,commas,in it" },
    ]);
    await subscription.unsubscribe();
    while ((await redis.publish(key, "late")) > 0);
    assert.equal(received.filter(({ message }) => message !== "late").length, 3);
  });
});

describe("@upstash/lock", () => {
  const once = { attempts: 1, delay: 0 };

  test("is acquired, seen, extended and released", async () => {
    const lock = new Lock({ id: key, redis, lease: 60_000 });
    assert.equal(await lock.acquire(), true);
    assert.equal(await lock.getStatus(), "ACQUIRED");
    const before = await redis.ttl(key);
    assert.equal(await lock.extend(60_000), true);
    assert.ok((await redis.ttl(key)) > before);
    assert.equal(await lock.release(), true);
    assert.equal(await lock.release(), false);
    assert.equal(await redis.exists(key), 0);
  });

  test("excludes other clients until its release", async () => {
    const [first, second] = [1, 2].map(() => new Lock({ id: key, redis, lease: 60_000, retry: once }));
    assert.equal(await first.acquire(), true);
    assert.equal(await second.acquire(), false);
    assert.equal(await first.release(), true);
    assert.equal(await second.acquire(), true);
    assert.equal(await second.release(), true);
  });

  test("one of many contending clients gets the lock", async () => {
    const locks = Array.from({ length: 10 }, () => new Lock({ id: key, redis, lease: 60_000, retry: once }));
    const won = await Promise.all(locks.map((lock) => lock.acquire()));
    assert.equal(won.filter(Boolean).length, 1);
  });
});

describe("edgelatch beside them", () => {
  let connect;
  before(async () => {
    const project = await newProject();
    const edgelatch = await import(pathToFileURL(join(project, "node_modules/edgelatch/index.js")));
    // These tests assert no response time.
    connect = (options) => edgelatch.connect({ ...options, requestTimeoutMs: 60_000 });
  });
  after(removeProjects);

  test("its hold is in Redis as Redisson writes it, where their client sees it", async () => {
    const lease = await connect({ url, token }).lock(key).acquire();
    const fields = await redis.hgetall(key);
    assert.deepEqual(Object.values(fields), [1]);
    assert.match(Object.keys(fields)[0], /^[0-9a-f-]{36}:\d+$/);
    assert.equal(await redis.get(`redisson_lock_token:{${key}}`), lease.token);
    assert.equal(await lease.release(), "released");
    assert.equal(await redis.exists(key), 0);
  });

  test("a counter under its lock is right, with their client at work inside", async () => {
    const lock = connect({ url, token }).lock(`${key}:lock`);
    const add = () =>
      lock.run({ waitMs: 60_000, maxRequests: 10_000 }, async () => {
        const before = (await redis.get(key)) ?? 0;
        await redis.set(key, before + 1);
      });
    await Promise.all(Array.from({ length: 10 }, add));
    assert.equal(await redis.get(key), 10);
  });

  test("a key that their lock holds is none of its own", async () => {
    const theirs = new Lock({ id: key, redis, lease: 60_000 });
    assert.equal(await theirs.acquire(), true);
    await assert.rejects(connect({ url, token }).lock(key).tryAcquire(), { code: "gateway-refused", reason: "wrong-type" });
    assert.equal(await theirs.release(), true);
  });
});
