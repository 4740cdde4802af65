/**
 * The environment of a measurement: private servers on loopback, and the programs that send
 * requests.
 *
 * Environment variables: EDGELATCH_GATEWAY (the program of the gateway), EDGELATCH_CONSUMER (a
 * project with the packed npm package), EDGELATCH_PEER (the folder of the Java side),
 * EDGELATCH_TOOLS (a `node_modules` with the other libraries), EDGELATCH_LOGS (the folder for the
 * output of programs).
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The longest time of a measurement; one that takes longer has failed, and is ended. */
const MEASUREMENT_MS = 300_000;
/** The number of ports that are tried: another program may be faster to use a free one. */
const TRIES = 3;
const REDISSON = "redisson";

const children = new Set();
const folders = new Set();
// No program and no folder remains, however this one ends.
process.on("exit", () => {
  for (const child of children) child.kill();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

function start(title, program, args, options) {
  const child = spawn(program, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], ...options });
  const log = createWriteStream(join(process.env.EDGELATCH_LOGS, `bench-${title.replaceAll(/[^a-z0-9]/gi, "-")}.log`));
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  children.add(child);
  for (const end of ["close", "error"]) child.once(end, () => children.delete(child));
  return child;
}

/** Runs a program to its end and returns its output. */
export async function run(title, program, args, env = {}) {
  const child = start(title, program, args, { env: { ...process.env, ...env }, timeout: MEASUREMENT_MS });
  let [output, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  const [code, signal] = await once(child, "close");
  if (code !== 0) throw new Error(`${title} ended with ${signal ?? code}:\n${output}${errors}`);
  return output;
}

/** Runs a program that prints its figures in its last line of JSON, and returns them. */
export async function figures(title, program, args, env) {
  const output = await run(title, program, args, env);
  const line = output.split("\n").findLast((text) => text.startsWith("{"));
  if (!line) throw new Error(`${title} printed no figures:\n${output}`);
  return JSON.parse(line);
}

/** Starts a server that prints `announcement` when it serves; returns the word after it. */
async function serve(title, program, args, announcement, env = {}) {
  const child = start(title, program, args, { env: { ...process.env, ...env } });
  const word = await new Promise((resolve, reject) => {
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
      const [, found] = output.split(announcement);
      if (/\s/.test(found ?? "")) resolve(found.split(/\s/)[0]);
    });
    child.once("error", reject).once("close", () => reject(new Error(`${title} ended before it served:\n${output}`)));
  });
  const close = async () => {
    if (!children.has(child)) return;
    child.kill();
    await once(child, "close");
  };
  return { word, id: child.pid, close };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a server on a free port; on another one if a different program was faster to use it. */
async function onFreePort(startOn, tries = TRIES) {
  const port = await freePort();
  try {
    return { port, ...(await startOn(port)) };
  } catch (error) {
    if (tries === 1) throw error;
    return onFreePort(startOn, tries - 1);
  }
}

/** Creates a temporary folder, which is removed when this program ends. */
export function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), "edgelatch-bench-"));
  folders.add(folder);
  return folder;
}

/**
 * Starts a Redis that knows no script, with the gateway in front; `close` ends both. `options` are
 * further options of the gateway.
 */
async function startEnv({ java }, options) {
  const folder = newFolder();
  const server = await onFreePort((port) => {
    const args = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--appendonly", "no", "--maxclients", "4000"];
    return serve("redis", "redis-server", [...args, "--dir", folder], "Ready to accept ");
  });
  const redis = `redis://127.0.0.1:${server.port}`;
  const [token, scopeKey] = [randomBytes(24).toString("hex"), randomBytes(32).toString("hex")];
  const args = ["--listen", "127.0.0.1:0", "--redis", redis, ...options];
  const secrets = { EDGELATCH_TOKENS: token, EDGELATCH_SCOPE_KEYS: scopeKey };
  const gateway = await serve("gateway", process.env.EDGELATCH_GATEWAY, args, "listening on ", secrets);
  const url = gateway.word;
  const variables = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, EDGELATCH_TEST_REDIS: redis };

  /** Measures a library by `tests/bench/measure.mjs`, or Redisson by its own program. */
  const measure = (key, what, options = {}) => {
    if (key === REDISSON) {
      const classPath = `${process.env.EDGELATCH_PEER}/classes:${process.env.EDGELATCH_PEER}/lib/*`;
      const request = JSON.stringify({ ...options, redis, what });
      return figures(`redisson ${what}`, "java", [...java, "-cp", classPath, "edgelatch.peer.Bench", request]);
    }
    // The flag that exposes the garbage collector disables the code cache, so a start takes half as
    // long again.
    const flags = ["--experimental-import-meta-resolve", "--no-warnings", ...(what === "start" ? [] : ["--expose-gc"])];
    const program = ["tests/bench/measure.mjs", key, what, JSON.stringify(options)];
    return figures(`${key} ${what}`, process.execPath, [...flags, ...program], variables);
  };
  /** Measures by a benchmark in Rust: `tests/bench/native.rs` or `blocks.rs`. */
  const rust = (name, options) => {
    const args = ["bench", "--quiet", "--package", "edgelatch-tests", "--bench", name, "--", JSON.stringify(options)];
    const gatewayVariables = { EDGELATCH_TEST_SCOPE_KEY: scopeKey, EDGELATCH_TEST_PROCESS: String(gateway.id) };
    return figures(name, "cargo", args, { ...variables, ...gatewayVariables });
  };
  const close = async () => {
    await gateway.close();
    await server.close();
  };
  return { url, token, folder, redisPort: server.port, gatewayId: gateway.id, measure, rust, close };
}

/** Runs `work` with an environment of its own, whose gateway has these options as well. */
export async function withEnv(effort, work, options = []) {
  const env = await startEnv(effort, options);
  try {
    return await work(env);
  } finally {
    await env.close();
  }
}

/** Starts webdis in front of the environment's Redis. */
export function startWebdis({ folder, redisPort }) {
  return onFreePort(async (port) => {
    const file = join(folder, "webdis.json");
    const configuration = {
      redis_host: "127.0.0.1",
      redis_port: redisPort,
      http_host: "127.0.0.1",
      http_port: port,
      // One for each core, as in the project's gateway.
      threads: availableParallelism(),
      pool_size: 20,
      daemonize: false,
      database: 0,
      verbosity: 0,
      logfile: join(folder, "webdis.log"),
    };
    writeFileSync(file, JSON.stringify(configuration));
    const child = start("webdis", "webdis", [file]);
    const url = `http://127.0.0.1:${port}/`;
    while (children.has(child)) {
      const response = await fetch(`${url}PING`).catch(() => null);
      if (response?.ok) return { url, id: child.pid, close: () => child.kill() };
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    throw new Error("webdis ended before it served");
  });
}
