/** Debian's Webdis, in front of its own Redis. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "./check.mjs";

const TOKEN = "edge:s3cret:word";
/** The longest time for a response while Webdis starts: a different server may never respond. */
const PATIENCE_MS = 10_000;

/** Starts both; returns the address, the credentials, and a function that stops them. */
export async function startWebdis() {
  const folder = await mkdtemp(join(tmpdir(), "edgelatch-webdis-"));
  const socket = join(folder, "redis.sock");
  const children = [];
  const close = async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill();
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  };
  const start = async (program, ...args) => {
    const child = spawn(program, args, { cwd: folder, stdio: "ignore" });
    await once(child, "spawn");
    children.push(child);
    return child;
  };
  try {
    await start("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder);
    await until(() => answers(socket), "Redis answers");
    return { url: `http://127.0.0.1:${await listens()}`, token: TOKEN, close };
  } catch (error) {
    await close();
    throw error;
  }

  /** Starts Webdis on a free port, and on another one if a different program was faster. */
  async function listens() {
    for (;;) {
      const port = await freePort();
      await writeFile(join(folder, "webdis.json"), JSON.stringify(configuration(folder, socket, port)));
      const webdis = await start("webdis", join(folder, "webdis.json"));
      const serves = async () => (await redisOf(port)) === socket;
      await until(async () => (await serves()) || webdis.exitCode !== null, "Webdis serves");
      if (webdis.exitCode === null) return port;
    }
  }
}

function configuration(folder, socket, port) {
  return {
    // A path here means a Unix socket.
    redis_host: socket,
    redis_port: 0,
    http_host: "127.0.0.1",
    http_port: port,
    threads: 2,
    pool_size: 4,
    daemonize: false,
    database: 0,
    verbosity: 0,
    logfile: join(folder, "log"),
    acl: [{ disabled: ["*"] }, { http_basic_auth: TOKEN, enabled: ["*"] }],
  };
}

/** The socket of the Redis behind the Webdis on this port, if there is one with our credentials. */
async function redisOf(port) {
  const headers = { authorization: `Basic ${btoa(TOKEN)}` };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    const response = await fetch(`http://127.0.0.1:${port}/CONFIG/GET/unixsocket`, { headers, signal });
    return (await response.json()).CONFIG[1];
  } catch {
    return undefined;
  }
}

/** Whether a server listens on the socket. */
async function answers(path) {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
