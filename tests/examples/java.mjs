/** A Java service beside a Worker. */

import assert from "node:assert/strict";

import { startNode } from "../interop/npm/env.mjs";
import { until } from "../runtimes/check.mjs";
import { newClient } from "../runtimes/project.mjs";
import { call, stage, start } from "./kit.mjs";
import { stall } from "./stale_write.mjs";
import { startWorker } from "./workers.mjs";

/** Maven finds its settings and downloads in the home of the user who runs the tests. */
const HOME = { HOME: process.env.HOME };

async function java(t, workshop) {
  const node = await startNode();
  t.after(() => node.close());
  const env = { UPSTASH_REDIS_REST_URL: node.url, UPSTASH_REDIS_REST_TOKEN: node.token };
  const [service, { address: worker }] = await Promise.all([
    start(t, workshop, await stage(workshop, "java-redisson"), { env: { ...HOME, REDIS_URL: `redis://127.0.0.1:${node.port}` } }),
    startWorker(t, workshop, "java-redisson", { block: 1, env }),
  ]);
  const programs = {
    java: { address: `${await service.address()}/count`, done: /^counted 100 under token (\d+)$/ },
    worker: { address: worker, done: /^sold 100 under token (\d+)$/ },
  };
  const lock = (await newClient({ url: node.url, token: node.token })).fencedLock("stock:7");
  let newest = 0;
  for (const [one, other] of [["java", "worker"], ["worker", "java"], ["java", "worker"]]) {
    const stalled = stall("POST", programs[one].address, "100");
    await until(async () => (await lock.inspect()).locked, `${one} holds the lock`);
    assert.equal((await call("POST", programs[other].address, { body: "100" })).status, 503, `${other} waits for ${one}`);
    const { status, text } = await stalled.finish();
    assert.equal(status, 200, text);
    let after;
    await until(async () => (after = await call("POST", programs[other].address, { body: "100" })).status !== 503, `${other} has the lock`);
    for (const [program, body] of [[one, text], [other, after.body]]) {
      const [, token] = programs[program].done.exec(body) ?? assert.fail(`${program}: ${body}`);
      assert.ok(Number(token) > newest, `${program}: ${token} > ${newest}`);
      newest = Number(token);
    }
  }
}

export const examples = [
  { name: "java-redisson", what: "the service and the Worker exclude each other, and their tokens rise together", extent: "full", run: java },
];
