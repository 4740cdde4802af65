/** Programs for Node, Deno and Bun. */

import assert from "node:assert/strict";

import { newClient } from "../runtimes/project.mjs";
import { GATEWAY, call, run, seen, stage, start } from "./kit.mjs";

async function nodeCron(t, workshop) {
  const folder = await stage(workshop, "node-cron");
  // Two processes, each with its own schedule.
  const cron = await start(t, workshop, folder, { env: { SCHEDULE: "* * * * * *" } });
  const runs = () => cron.all(/^(\d+) writes the report of (\S+) under token (\d{16})$/gm).map(([, pid, due, token]) => ({ pid, due, token }));
  const processes = () => new Set(cron.all(/^(\d+) (?:writes|skips)/gm).map(([, pid]) => pid));
  await seen(() => runs().length >= 3 && processes().size === 2 && /skips/.test(cron.text()), "both processes fire", cron.text);
  // A process without the lock ends, and the other one writes the next report.
  const ended = cron.all(/^(\d+) skips/gm).at(-1)[1];
  process.kill(Number(ended), "SIGKILL");
  const before = runs().length;
  await seen(() => runs().slice(before).some(({ pid }) => pid !== ended), "the other process continues", cron.text);
  assert.equal(new Set(runs().map(({ due }) => due)).size, runs().length, cron.text());
  const tokens = runs().map(({ token }) => token);
  assert.deepEqual(tokens, [...tokens].sort(), "tokens rise");
}

async function leaderElection(t, workshop) {
  const folder = await stage(workshop, "leader-election");
  const started = await Promise.all([1, 2, 3].map(() => start(t, workshop, folder)));
  const text = () => started.map((program) => program.text()).join("");
  const events = (kind) => [...text().matchAll(/^(\d+) (leads with token (\d{16})|leads no more)$/gm)]
    .map(([, pid, , token]) => ({ pid: Number(pid), token: Number(token ?? 0) }))
    .filter(({ token }) => (kind === "begin" ? token > 0 : token === 0));
  const leader = () => events("begin").sort((a, b) => b.token - a.token)[0];
  const successor = ({ pid, token }, what) => seen(() => leader()?.token > token && leader().pid !== pid && leader(), what, text);
  await seen(() => text().match(/waits/g)?.length === 3, "three processes wait", text);

  const first = await seen(leader, "one of them leads", text);
  process.kill(first.pid, "SIGKILL");
  const second = await successor(first, "another process takes over from one that was killed");

  process.kill(second.pid, "SIGSTOP");
  const ended = events("end").filter(({ pid }) => pid === second.pid).length;
  const third = await successor(second, "another process takes over from one that hangs");
  process.kill(second.pid, "SIGCONT");
  await seen(() => events("end").filter(({ pid }) => pid === second.pid).length > ended, "the former leader notices its loss", text);

  process.kill(third.pid, "SIGTERM");
  await successor(third, "the last process takes over from one that was told to end");
}

async function hono(t, workshop) {
  const folder = await stage(workshop, "hono");
  const servers = await Promise.all([1, 2].map(() => start(t, workshop, folder)));
  const addresses = await Promise.all(servers.map((server) => server.address()));
  const pay = (id, i = 0) => call("POST", `${addresses[i % 2]}/orders/${id}/pay`);
  const answers = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => pay("1", i)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409, 409]);
  assert.equal(new Set(answers.map(({ body }) => body.token)).size, 1, "all of them name the payment");

  const lease = await (await newClient(GATEWAY)).lock("order:2").acquire();
  const busy = await pay("2");
  assert.deepEqual([busy.status, busy.headers.get("retry-after")], [503, "1"]);
  await lease.release();
  assert.equal((await pay("2")).status, 200);
}

async function deno(t, workshop) {
  const folder = await stage(workshop, "deno");
  const servers = await Promise.all([1, 2].map(() => start(t, workshop, folder)));
  const addresses = await Promise.all(servers.map((server) => server.address()));
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => call("GET", addresses[i % 2])));
  assert.equal(new Set(answers.map(({ body }) => body)).size, 1);
  assert.match(answers[0].body, /^report [0-9a-f-]{36}$/);
  assert.equal(servers.flatMap((server) => server.all(/^computed/gm)).length, 1);
}

async function bun(t, workshop) {
  const folder = await stage(workshop, "bun");
  const server = await start(t, workshop, folder);
  const address = await server.address();
  const job = async (total) => {
    const printed = await run(workshop, folder, "bun run job", { API: address, TOTAL: String(total) });
    return Number(/^written under token (\d{16})$/m.exec(printed)[1]);
  };
  const write = (token, total) => call("PUT", `${address}/invoices/42`, { headers: { "fencing-token": `${token}` }, body: JSON.stringify({ total }) });
  const stored = async () => (await call("GET", `${address}/invoices/42`)).body;
  const first = await job(100);
  assert.deepEqual(await stored(), { total: 100, fence: first });
  const second = await job(200);
  assert.ok(second > first);
  // The first job was stopped before it wrote, and continues now.
  assert.deepEqual(await write(first, 100).then(({ status, body }) => [status, body]), [409, "stale"]);
  assert.deepEqual(await stored(), { total: 200, fence: second });
  assert.equal((await write(second, 201)).status, 200);
  assert.equal((await write("none", 0)).status, 428);
}

export const examples = [
  { name: "node-cron", what: "each due time runs once in two processes, and one of them continues alone", extent: "quick", run: nodeCron },
  { name: "leader-election", what: "another process takes over from a leader that is killed, hangs or ends", extent: "quick", run: leaderElection },
  { name: "hono", what: "an order is paid once, and a request that waits too long is refused", extent: "quick", run: hono },
  { name: "deno", what: "two servers compute a report once", extent: "quick", run: deno },
  { name: "bun", what: "the API rejects a stale token", extent: "quick", run: bun },
];
