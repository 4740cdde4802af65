/** Clients in processes of their own, which a test stops or kills. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { soon } from "../check.mjs";
import { newProject } from "../project.mjs";

/** Starts a client; `has(event)` waits until it has printed this. */
async function startClient(env, variables) {
  const cwd = await newProject();
  const child = spawn(process.execPath, ["tests/web_locks/client.mjs"], {
    cwd, env: { PATH: process.env.PATH, ...env, ...variables }, stdio: ["pipe", "pipe", "inherit"],
  });
  const printed = [];
  const watchers = new Set();
  createInterface({ input: child.stdout }).on("line", (line) => {
    printed.push(line);
    for (const watch of watchers) watch();
  });
  const exited = once(child, "exit");
  return {
    printed,
    has: (event) => soon(new Promise((resolve) => {
      const watch = () => printed.includes(event) && resolve();
      watchers.add(watch);
      watch();
    }), `${event} of a client`),
    release: () => child.stdin.write("\n"),
    async end() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Declares the tests. `env` has the address and the token of a gateway. */
export function processes(env) {
  const started = [];
  let locks;
  const NAMESPACE = `web-locks:${crypto.randomUUID()}`;
  const start = async (NAME, variables = {}) => {
    const client = await startClient(env, { NAMESPACE, NAME, ...variables });
    started.push(client);
    return client;
  };
  before(async () => {
    const folder = join(await newProject(), "node_modules/edgelatch");
    const load = (file) => import(pathToFileURL(join(folder, file)));
    const [{ connect }, { webLocks }] = await Promise.all([load("index.js"), load("web-locks.js")]);
    const client = connect({ url: env.EDGELATCH_TEST_URL, token: env.EDGELATCH_TEST_TOKEN, requestTimeoutMs: 60_000 });
    locks = webLocks(client, { namespace: NAMESPACE });
  });
  after(() => Promise.all(started.map(({ end }) => end())));

  test("requests of three processes are granted in their order, and query lists them", async () => {
    const clients = [];
    for (const CLIENT_ID of ["one", "two", "three"]) {
      const client = await start("fifo", { CLIENT_ID });
      clients.push(client);
      await client.has("queued");
    }
    const ids = (list) => list.filter(({ name }) => name === "fifo").map(({ clientId }) => clientId);
    const state = await locks.query();
    assert.deepEqual([ids(state.held), ids(state.pending)], [["one"], ["two", "three"]]);
    for (const client of clients) {
      await client.has("granted");
      const isGranted = clients.map(({ printed }) => printed.includes("granted"));
      assert.deepEqual(isGranted, clients.map((_, i) => i <= clients.indexOf(client)));
      client.release();
      await client.has("released");
    }
  });

  test("a process whose lock is stolen gets an AbortError", async () => {
    const client = await start("stolen");
    await client.has("granted");
    assert.equal(await locks.request("stolen", { steal: true }, () => "stolen"), "stolen");
    await client.has("AbortError");
  });

  // Slow: the request waits for the ends of the lease, and of the life of the dead waiter.
  test("a process that dies with a lock, and one that dies in the queue, are followed by the next request", async () => {
    const holder = await start("dead", { LEASE_MS: "5000" });
    await holder.has("granted");
    const waiter = await start("dead");
    await waiter.has("queued");
    const next = locks.request("dead", () => "granted");
    await locks.query();
    await Promise.all([holder.end(), waiter.end()]);
    assert.equal(await soon(next, "the next request is granted"), "granted");
  });
}
