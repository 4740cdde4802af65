/**
 * `node demo-redis.mjs`: a `redis-server` on a socket in a folder of its own, without data on disk,
 * that the demo's page can kill. Prints `control URL`, then `redis unix:PATH`.
 *
 * `POST URL` with the key from EDGELATCH_CONTROL_KEY as bearer token kills Redis by SIGKILL, and
 * starts an empty one after `DOWN_MS`. The response comes when the new one is ready.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** How long Redis is down. */
const DOWN_MS = 3_000;
/** The interval between two attempts to reach a new Redis. */
const POLL_MS = 20;

const key = process.env.EDGELATCH_CONTROL_KEY;
if (!key) throw new Error("EDGELATCH_CONTROL_KEY is not set");
const folder = mkdtempSync(join(tmpdir(), "edgelatch-demo-"));
const socket = join(folder, "redis.sock");
const settings = ["--port", "0", "--save", "", "--appendonly", "no", "--unixsocketperm", "700", "--unixsocket", socket, "--dir", folder];
let redis = null;

async function start() {
  redis = spawn("redis-server", settings, { stdio: "ignore" });
  redis.once("error", (error) => {
    throw error;
  });
  while (!(await isReady())) await pause(POLL_MS);
}

function isReady() {
  return new Promise((done) => {
    const connection = connect(socket, () => connection.write("PING\r\n"));
    connection.once("data", () => connection.end(() => done(true)));
    connection.once("error", () => done(false));
  });
}

/** The outage that is under way, or null: a second request does not kill the new Redis. */
let outage = null;

async function restart() {
  const gone = once(redis, "exit");
  redis.kill("SIGKILL");
  await gone;
  await pause(DOWN_MS);
  await start();
  outage = null;
}

const server = createServer(async (request, response) => {
  const isAllowed = request.method === "POST" && request.headers.authorization === `Bearer ${key}`;
  if (isAllowed) await (outage ??= restart());
  response.writeHead(isAllowed ? 200 : 403, { "content-type": "application/json" }).end(JSON.stringify({ downMs: DOWN_MS }));
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    redis?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    process.exit();
  });
}
await start();
server.listen(0, "127.0.0.1", () => {
  console.log(`control http://127.0.0.1:${server.address().port}/`);
  console.log(`redis unix:${socket}\n`);
});
