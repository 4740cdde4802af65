/** Workers in `wrangler dev`, with its local queue, database, bucket and Durable Object. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { newClient } from "../runtimes/project.mjs";
import { ENV, EXAMPLES, GATEWAY, call, commandOf, seen, stage, start } from "./kit.mjs";
import { staleWrite } from "./stale_write.mjs";

/** Neither a fixed port nor one of a debugger, since several Workers run at once. */
const PORTS = "--port 0 --inspector-port 0";

/**
 * Starts a Worker by the command in a block of its README. `number` distinguishes the copies of one
 * example, `prepare` changes the copy, and `env` has more variables, also for its secrets.
 */
export async function startWorker(t, workshop, name, { number = 1, block = 0, prepare, env } = {}) {
  const folder = await stage(workshop, name, `${name}-${number}`);
  const secrets = await readFile(join(folder, ".dev.vars.example"), "utf8");
  const values = { ...ENV, ...env };
  await writeFile(join(folder, ".dev.vars"), secrets.replace(/^(\w+)=.*$/gm, (_, variable) => `${variable}="${values[variable]}"`));
  await prepare?.(folder);
  const command = await commandOf(name, block);
  // A script of npm passes on what follows the dashes.
  const line = [command, ...(command.startsWith("npm ") ? ["--"] : []), PORTS].join(" ");
  const quiet = { WRANGLER_SEND_METRICS: "false", WRANGLER_REGISTRY_PATH: join(folder, ".registry"), CLOUDFLARE_CF_FETCH_ENABLED: "false" };
  const worker = await start(t, workshop, folder, { command: line, env: { ...quiet, ...env } });
  return { worker, address: await worker.address() };
}

async function cron(t, workshop) {
  const regions = await Promise.all([1, 2].map((number) => startWorker(t, workshop, "worker-cron", { number })));
  const text = () => regions.map(({ worker }) => worker.text()).join("");
  const due = Date.UTC(2030, 0, 1);
  const fire = (time) => Promise.all(regions.map(({ address }) => call("GET", `${address}/cdn-cgi/handler/scheduled?time=${time}`)));
  // Each region fires twice for one due time, since a trigger may fire more than once.
  for (const time of [due, due, due + 600_000]) {
    assert.deepEqual((await fire(time)).map(({ status }) => status), [200, 200], text());
  }
  const lines = (pattern) => text().match(pattern)?.length ?? 0;
  await seen(() => lines(/writes the report of|skips 20/g) === 6, "six invocations", text);
  for (const time of [due, due + 600_000]) {
    assert.equal(lines(new RegExp(`writes the report of ${new Date(time).toISOString()} under token \\d{16}`, "g")), 1, text());
  }
  const recipe = (file) => readFile(join(EXAMPLES, file), "utf8");
  assert.equal(await recipe("worker-cron/once.js"), await recipe("node-cron/once.mjs"), "one recipe");
}

async function queue(t, workshop) {
  const regions = await Promise.all([1, 2].map((number) => startWorker(t, workshop, "worker-queue", { number })));
  const text = () => regions.map(({ worker }) => worker.text()).join("");
  const orders = ["a1", "a2", "a3"];
  // Every order arrives twice in each of two queues.
  const sends = [...orders, ...orders].flatMap((id) => regions.map(({ address }) => call("POST", `${address}/orders/${id}`)));
  for (const { status } of await Promise.all(sends)) assert.equal(status, 202);
  const outcomes = () => [...text().matchAll(/(charged order|order) (a\d)( was charged before)?/g)];
  await seen(() => outcomes().length >= sends.length, "every message is handled", text);
  const charged = outcomes().filter(([, kind]) => kind === "charged order").map(([, , id]) => id);
  assert.deepEqual(charged.sort(), orders, text());
}

async function durableObject(t, workshop) {
  const { address } = await startWorker(t, workshop, "worker-durable-object");
  const read = async () => (await call("GET", `${address}/stock/7`)).body;
  const sales = await Promise.all(Array.from({ length: 8 }, () => call("POST", `${address}/stock/7/sell`)));
  assert.deepEqual(sales.map(({ body }) => body).sort(), [92, 93, 94, 95, 96, 97, 98, 99]);
  // A program outside of the Worker counts the warehouse; no piece is sold meanwhile.
  const put = (token, pieces) => call("PUT", `${address}/stock/7`, { headers: { "fencing-token": `${token}` }, body: `${pieces}` });
  const lease = await (await newClient(GATEWAY)).lock("stock:7").acquire();
  const sale = call("POST", `${address}/stock/7/sell`);
  assert.equal((await put(lease.token, 50)).status, 200);
  assert.equal(await read(), 50);
  await lease.release();
  assert.equal((await sale).body, 49);
  assert.deepEqual(await put(lease.token, 50).then(({ status, body }) => [status, body]), [409, "stale"]);
  assert.equal(await read(), 49);
}

async function d1(t, workshop) {
  const { address } = await startWorker(t, workshop, "worker-d1");
  await staleWrite({
    address: `${address}/invoices/42`,
    lock: "invoice:42",
    body: (total) => JSON.stringify({ total }),
    stored: async () => {
      const { total, fence } = (await call("GET", `${address}/invoices/42`)).body;
      return { value: total, token: fence };
    },
  });
}

async function r2(t, workshop) {
  const { address } = await startWorker(t, workshop, "worker-r2");
  await staleWrite({
    address: `${address}/files/letter`,
    lock: "file:letter",
    body: (number) => `letter ${number}`,
    stored: async () => {
      const { body, headers } = await call("GET", `${address}/files/letter`);
      return { value: Number(body.replace("letter ", "")), token: Number(headers.get("fencing-token")) };
    },
  });
  const recipe = await readFile(join(EXAMPLES, "worker-r2/fenced-put.js"), "utf8");
  assert.ok((await readFile(join(EXAMPLES, "../docs/fencing.md"), "utf8")).includes(recipe), "the recipe of docs/fencing.md");
}

export const examples = [
  { name: "worker-cron", what: "a report is written once although two regions fire", extent: "quick", run: cron },
  { name: "worker-queue", what: "an order is charged once although its message comes four times", extent: "quick", run: queue },
  { name: "worker-durable-object", what: "the object rejects a stale token of a program outside", extent: "quick", run: durableObject },
  { name: "worker-d1", what: "a stalled request does not overwrite a newer row", extent: "quick", run: d1 },
  { name: "worker-r2", what: "a stalled upload does not overwrite a newer file", extent: "quick", run: r2 },
];
