/** Redis servers, each with a gateway: three independent nodes, which a test ends by their ids. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { until } from "../runtimes/check.mjs";
import { required } from "../runtimes/project.mjs";

export const TOKEN = "the-token-of-the-tests-of-drop-ins";

/** Starts a Redis and a gateway; returns the socket, the address, and a function that ends both. */
export async function startNode() {
  const folder = await mkdtemp(join(tmpdir(), "edgelatch-node-"));
  const socket = join(folder, "redis.sock");
  const children = [];
  const start = (program, args, options) => {
    const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], ...options });
    children.push(child);
    return child;
  };
  const close = async () => {
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill();
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  };
  const redis = start("redis-server", ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]);
  redis.stdout.resume();
  await until(() => isListening(socket), "Redis listens");
  const env = { PATH: process.env.PATH, EDGELATCH_TOKENS: TOKEN, EDGELATCH_LOG: "warn" };
  const gateway = start(required("EDGELATCH_GATEWAY"), ["--redis", `unix:${socket}`, "--listen", "127.0.0.1:0"], { env });
  for await (const line of createInterface({ input: gateway.stdout })) {
    const [, url] = line.match(/^listening on (.+)$/) ?? [];
    if (url) return { socket, url, token: TOKEN, close };
  }
  await close();
  throw new Error("the gateway did not start");
}

const isListening = (path) =>
  new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => resolve(socket.destroy() && true));
    socket.once("error", () => resolve(false));
  });
