/** Compares the project's gateway with webdis, on one Redis. */

import { readFileSync } from "node:fs";

import { figures, startWebdis, withEnv } from "./env.mjs";
import { median, table } from "./figures.mjs";

/** The script that the gateways run: about the work of acquiring a lock. */
const SCRIPT = "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return redis.call('pttl', KEYS[1]) > 0 and ARGV[2]";
/** The lease in milliseconds, which the script returns. */
const LEASE = "30000";
const CONNECTIONS = 32;
/** The figures of each gateway, and their units. */
const FIGURES = [
  ["perSecond", "requests", "requests/s"],
  ["p50", "latency, median", "ms"],
  ["p99", "latency, p99", "ms"],
  ["memory", "memory after the load", "MB"],
];

/** Puts the same load on both gateways, in turns. */
export function measureGateways(effort) {
  return withEnv(effort, async (env) => {
    const webdis = await startWebdis(env);
    const loads = await loadsOf(env, webdis);
    const found = loads.map(() => []);
    for (let turn = 0; turn < effort.turns; turn += 1) {
      for (const [at, load] of loads.entries()) found[at].push(await run(load, effort.loadSeconds));
    }
    webdis.close();
    const how =
      `median of ${effort.turns} turns of ${effort.loadSeconds} s; wrk with ${CONNECTIONS} connections runs a script that acquires a lock, ` +
      "on the same machine as the gateway and Redis";
    const rows = FIGURES.map(([key, what, unit]) => [what, unit, found.map((turns) => median(turns.map((one) => one[key])))]);
    return table("gateways", "A gateway under load", how, loads.map(({ name }) => name), rows);
  });
}

async function loadsOf({ url, token, gatewayId }, webdis) {
  const authorization = `Bearer ${token}`;
  const loaded = await fetch(url, { method: "POST", headers: { authorization }, body: JSON.stringify(["SCRIPT", "LOAD", SCRIPT]) });
  const { result: sha } = await loaded.json();
  const body = JSON.stringify(["EVALSHA", sha, "1", "bench:key", "value", LEASE]);
  const loads = [
    { name: "edgelatch-gateway", url, body, authorization, id: gatewayId },
    { name: "webdis", url: webdis.url, body: `EVALSHA/${sha}/1/bench:key/value/${LEASE}`, authorization: "none", id: webdis.id },
  ];
  for (const load of loads) {
    const response = await fetch(load.url, { method: "POST", headers: { authorization: load.authorization }, body: load.body });
    const answer = await response.text();
    if (!answer.includes(LEASE)) throw new Error(`${load.name} does not run the script: ${answer}`);
  }
  return loads;
}

/** Measures a gateway under load. */
async function run({ name, url, body, authorization, id }, seconds) {
  const args = ["--threads", "1", "--connections", String(CONNECTIONS), "--duration", `${seconds}s`, "--script", "tests/bench/load.lua", url];
  const found = await figures(`wrk ${name}`, "wrk", args, { LOAD_BODY: body, LOAD_AUTHORIZATION: authorization });
  if (found.errors !== 0) throw new Error(`${name}: ${found.errors} errors under load`);
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/status`, "utf8"));
  return { ...found, memory: (kibibytes * 1024) / 1e6 };
}
