/**
 * Compares `edgelatch/redlock` with `redlock`, and `edgelatch/upstash-lock` with `@upstash/lock`:
 * the same tests run for each package and for its replacement, on the same three Redis servers.
 * Then come the differences that the migration pages state, rows of the site's comparison page, and
 * the programs of these pages.
 *
 * Environment: EDGELATCH_GATEWAY (the program), EDGELATCH_TOOLS (a `node_modules` with redlock,
 * redis-semaphore, ioredis, `@upstash/lock` and `@upstash/redis`), EDGELATCH_TARBALL (the output of
 * `npm pack`).
 */

import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { pathToFileURL } from "node:url";

import { newProject, removeProjects, required } from "../runtimes/project.mjs";
import { comparisonTests } from "./comparison.mjs";
import { redlockDifferences, upstashLockDifferences } from "./differences.mjs";
import { pageTests } from "./pages.mjs";
import { redlockTests } from "./redlock.mjs";
import { startNode, TOKEN } from "./servers.mjs";
import { upstashLockTests } from "./upstash_lock.mjs";

const require = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"));
const { Redis: TcpClient } = require("ioredis");
const { Redis } = require("@upstash/redis");

/** The three nodes, each with a connection to its Redis. Filled before the tests. */
const nodes = [];
/** The entries of the packed package. */
const edgelatch = {};
const theirs = { redlock: {}, upstashLock: {} };
const ours = { redlock: {}, upstashLock: {} };

before(async () => {
  const folder = join(await newProject(), "node_modules/edgelatch");
  const load = (file) => import(pathToFileURL(join(folder, file)));
  for (const node of await Promise.all([1, 2, 3].map(startNode))) {
    nodes.push({ ...node, redis: new TcpClient({ path: node.socket }) });
  }
  Object.assign(edgelatch, await load("index.js"));
  // These tests assert no response time.
  const options = { token: TOKEN, requestTimeoutMs: 60_000 };
  const clients = nodes.map(({ url }) => edgelatch.connect({ url, ...options }));
  const connections = nodes.map(({ redis }) => redis);
  const [{ url, redis }] = nodes;

  Object.assign(theirs.redlock, { module: require("redlock"), clients: connections, nodes: connections, unreachable: unreachableClient() });
  const unreachable = edgelatch.connect({ url: "http://127.0.0.1:1", token: TOKEN });
  Object.assign(ours.redlock, { module: await load("redlock.js"), clients, nodes: connections, unreachable, url });
  Object.assign(theirs.upstashLock, { module: require("@upstash/lock"), redis: new Redis({ url, token: TOKEN }), node: redis, url });
  Object.assign(ours.upstashLock, { module: await load("upstash-lock.js"), redis: clients[0], node: redis, url });
});

after(async () => {
  for (const { redis } of nodes) redis.disconnect();
  await Promise.all(nodes.map(({ close }) => close()));
  await removeProjects();
});

/** A connection of ioredis that fails at once, as in the tests of `redlock`. */
function unreachableClient() {
  const client = new TcpClient({ host: "127.0.0.1", port: 1, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on("error", () => {});
  return client;
}

describe("redlock", () => redlockTests(theirs.redlock));
describe("edgelatch/redlock", () => redlockTests(ours.redlock));
describe("edgelatch/redlock, differences", () => redlockDifferences(ours.redlock, theirs.redlock, edgelatch));
describe("@upstash/lock", () => upstashLockTests(theirs.upstashLock));
describe("edgelatch/upstash-lock", () => upstashLockTests(ours.upstashLock));
describe("edgelatch/upstash-lock, differences", () => upstashLockDifferences(ours.upstashLock, theirs.upstashLock, edgelatch, Redis));
describe("comparison", () => comparisonTests({ redlock: require("redlock"), redisSemaphore: require("redis-semaphore"), TcpClient }, nodes));
describe("migration pages", () => pageTests(nodes));
