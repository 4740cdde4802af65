/** The lines of `edgelatch/log`. */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { until } from "../runtimes/check.mjs";
import { host, leaks, load, newName, token, url, watched } from "./env.mjs";

/** A line without its time, and with `…` for each number of milliseconds and each token. */
const withoutNumbers = (line) =>
  line.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /, "").replace(/after \d+ ms/g, "after … ms").replace(/token \d{16}/, "token …");

/** Returns a client that logs, and its lines. */
async function logged({ level, ...options } = {}) {
  const { edgelatch, logTo } = await load();
  const lines = [];
  const client = edgelatch.connect(watched({ ...options, log: logTo((line) => void lines.push(line), level) }));
  return { client, lines, steps: () => lines.map(withoutNumbers).map((line) => line.replaceAll(host, "HOST")) };
}

function lifeTests() {
  test("a lock's life has a line for each step", async () => {
    const { client, steps } = await logged();
    const name = newName();
    const lock = `lock ${JSON.stringify(name)} at HOST`;
    const lease = await client.lock(name).acquire({ leaseMs: 60_000 });
    await lease.renew({ leaseMs: 120_000 });
    await until(() => steps().length === 3, "the renewal has a line");
    assert.equal(await lease.release(), "released");
    assert.deepEqual(steps(), [
      `DEBUG edgelatch: acquire ${lock}`,
      `DEBUG edgelatch: acquired ${lock} after … ms, token …`,
      `DEBUG edgelatch: renewed ${lock}`,
      `DEBUG edgelatch: release ${lock}`,
      `DEBUG edgelatch: released ${lock} after … ms`,
      `DEBUG edgelatch: end of ${lock} after … ms: released`,
    ]);
  });

  test("run, await using, sides, permits and owners are logged like acquire and release", async () => {
    const lives = {
      run: (client, name) => client.lock(name).run(() => {}),
      "run with options": (client, name) => client.fairLock(name).run({ leaseMs: 60_000 }, async () => {}),
      dispose: async (client, name) => (await client.fencedLock(name).acquire())[Symbol.asyncDispose](),
      side: async (client, name) => (await client.readWriteLock(name).write.acquire()).release(),
      owner: async (client, name) => (await client.owner().lock(name).tryAcquire()).release(),
      permits: async (client, name) => {
        await client.semaphore(name).trySetPermits(1, { lifeMs: 60_000 });
        await client.semaphore(name).run(1, () => {});
      },
      "several locks": async (client, name) => (await client.multiLock([client.lock(name), client.lock(`${name}2`)]).acquire()).release(),
    };
    for (const [way, live] of Object.entries(lives)) {
      const { client, steps } = await logged();
      await live(client, newName());
      const words = steps().map((line) => /edgelatch: (\w+)/.exec(line)[1]);
      assert.deepEqual(words, ["acquire", "acquired", "release", "released", "end"], way);
    }
  });
}

function waitTests() {
  test("a refused try, a wait, its notification mode and a cancelled wait have lines", async () => {
    const { client, steps } = await logged({ level: "info" });
    const { client: verbose, steps: all } = await logged();
    const name = newName();
    const [held, lock] = [await client.lock(name).acquire(), verbose.lock(name)];
    assert.equal(await lock.tryAcquire(), null);
    assert.match(all().at(-1), /^DEBUG edgelatch: not acquired lock .+ at HOST after … ms: wait-timeout$/);
    const controller = new AbortController();
    const waiting = lock.acquire({ waitMs: "until-aborted", signal: controller.signal });
    // The mode has its line after a wait that ends by itself, if it is known by then.
    await verbose.events().next();
    controller.abort(new Error("a-reason-of-the-caller"));
    await assert.rejects(waiting, /a-reason-of-the-caller/);
    assert.match(all().at(-1), /^DEBUG edgelatch: not acquired lock .+ at HOST after … ms: cancelled$/);
    await assert.rejects(lock.acquire({ waitMs: 50 }), { code: "wait-timeout" });
    const mode = /^INFO edgelatch: waiters at HOST learn of releases by (stream|polling)$/;
    await until(() => all().some((line) => mode.test(line)), "the mode has a line");
    await held.release();
    assert.deepEqual(steps(), []);
  });

  test("a lost lease has one warning", async () => {
    const { client, lines, steps } = await logged({ level: "warn" });
    const name = newName();
    const lock = client.lock(name);
    const lease = await lock.acquire();
    await lock.forceRelease();
    assert.equal(await lease.isHeld(), false);
    await until(() => lines.length > 0, "the loss has a line");
    await lease.release().catch(() => {});
    assert.deepEqual(steps(), [`WARN edgelatch: lost lock ${JSON.stringify(name)} at HOST: gone`]);
  });
}

function footprintTests() {
  test("an observed lease can be collected, so that it is renewed no more", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    const { client } = await logged();
    const acquire = async () => new WeakRef(await client.lock(newName()).acquire({ leaseMs: 60_000 }));
    const lease = await acquire();
    await until(async () => {
      await new Promise(setImmediate);
      collect();
      return lease.deref() === undefined;
    }, "the lease is collected");
  });

  test("no other entry contains or imports any of this", async () => {
    const folder = join((await load()).folder, "node_modules/edgelatch");
    const files = (await readdir(folder)).filter((file) => /\.c?js$/.test(file) && !/^(log|opentelemetry)\./.test(file));
    assert.ok(files.includes("edgelatch.js") && files.includes("index.cjs"), `${files}`);
    for (const file of files) {
      assert.doesNotMatch(await readFile(join(folder, file), "utf8"), /opentelemetry|wait\.duration|learn of releases|EDGELATCH_LOG/, file);
    }
  });
}

function contractTests() {
  test("an error of the output changes nothing", async () => {
    const { edgelatch, logTo } = await load();
    const fail = () => {
      throw new Error("a broken output");
    };
    const lock = edgelatch.connect(watched({ log: logTo(fail, "trace") })).lock(newName());
    assert.equal(await lock.run(() => "result"), "result");
    assert.equal(await (await lock.acquire()).release(), "released");
  });

  test("a method keeps its result, its error and its refusal of `using`", async () => {
    const { client } = await logged();
    const lock = client.lock(newName());
    const acquired = lock.acquire();
    assert.throws(() => acquired[Symbol.dispose], TypeError);
    await (await acquired).release();
    await assert.rejects(lock.acquire({ leaseMs: 1 }), { code: "invalid-option", option: "leaseMs" });
    await assert.rejects(lock.run("no function"), { code: "invalid-option", option: "work" });
    await assert.rejects(lock.run(() => Promise.reject(new Error("of the work"))), /of the work/);
    assert.equal((await lock.inspect()).locked, false);
  });

  test("no line contains a token, an owner, a request id, a hash or a value", async () => {
    const { client, lines } = await logged({ level: "trace" });
    const name = newName();
    await client.lock(name).run(async (lease) => {
      await lease.eval("return ARGV[1]", [], ["an-argument-secret"]);
      await client.guard(`${name}-key`).set(lease, "a-value-secret");
      await lease.renew();
    });
    const wrong = await logged({ level: "trace", token: "a-wrong-token-secret" });
    await assert.rejects(wrong.client.lock(name).acquire(), { code: "gateway-refused" });
    const redacted = await logged({ level: "trace", redactNames: true });
    await redacted.client.lock("a-name-secret").run(() => {});
    const text = [...lines, ...wrong.lines, ...redacted.lines].join("\n");
    const { found, known } = leaks(text);
    assert.ok(known > 8, `${known} secrets are known`);
    assert.deepEqual(found, []);
    for (const secret of [token, "a-wrong-token-secret"]) assert.ok(!text.includes(secret));
    assert.match(text, /request to /);
  });

  test("another value than a log is refused, and an unknown level too", async () => {
    const { edgelatch, logTo } = await load();
    for (const log of [console, console.log, null, true, "debug", () => {}]) {
      assert.throws(() => edgelatch.connect({ url, token, log }), { option: "log", accepted: "a log of edgelatch/log" });
    }
    assert.throws(() => logTo(console, "loud"), TypeError);
  });
}

export function logTests() {
  lifeTests();
  waitTests();
  footprintTests();
  contractTests();
}
