/** A Redis that both sides use: the packed npm package through a gateway, and Java. */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { newProject, removeProjects, required } from "../../runtimes/project.mjs";
import { startPeer } from "./peer.mjs";

/** The largest number of Redis servers that a kind uses. */
const NODES = 3;

/**
 * Redisson's times for a reply. With its default of 3 s a busy machine makes an acquisition fail
 * whose hold stays.
 */
const PATIENT = { timeout: 60_000, connectTimeout: 60_000, subscriptionTimeout: 60_000 };

/** Starts all servers; `close` ends them. `command` runs on the first Redis. */
export async function startEnv() {
  // First the steps that may fail: a started program would keep this one from ending.
  const folder = required("EDGELATCH_PEER");
  const edgelatch = await import(pathToFileURL(join(await newProject(), "node_modules/edgelatch/index.js")));
  const nodes = await Promise.all(Array.from({ length: NODES }, startNode));
  const peer = startPeer(folder);
  return {
    edgelatch,
    /** An edgelatch client for each Redis, and the number of responses that they have received. */
    client() {
      const seen = { answers: 0 };
      const counted = async (...request) => {
        const response = await fetch(...request);
        seen.answers += 1;
        return response;
      };
      const clients = nodes.map(({ url, token }) => edgelatch.connect({ url, token, fetch: counted, requestTimeoutMs: 60_000 }));
      return { locks: clients[0], nodes: clients, seen };
    },
    /**
     * A Java service on `count` Redis servers, with few connections and threads, and the settings
     * of `config`.
     */
    service(config = {}, count = 1) {
      const pools = { connectionMinimumIdleSize: 1, connectionPoolSize: 16 };
      const subscriptions = { subscriptionConnectionMinimumIdleSize: 1, subscriptionConnectionPoolSize: 4 };
      const configs = nodes.slice(0, count).map(({ port }) => {
        const singleServerConfig = { address: `redis://127.0.0.1:${port}`, ...pools, ...subscriptions, ...PATIENT };
        return { threads: 4, nettyThreads: 4, codec: "string", singleServerConfig, ...config };
      });
      return peer.open(configs);
    },
    /** Runs a command in the first Redis. */
    command: (...words) => command(nodes[0], words),
    /** Runs a command in each Redis; returns all results. */
    commandEverywhere: (...words) => Promise.all(nodes.map((node) => command(node, words))),
    async close() {
      await peer.close();
      await Promise.all(nodes.map((node) => node.close()));
      await removeProjects();
    },
  };
}

async function command({ url, token }, words) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(words) });
  const { result, error } = await response.json();
  if (error) throw new Error(error);
  return result;
}

/** A Redis with a gateway for edgelatch and a port for Java. */
export async function startNode() {
  const gateway = await startGateway(required("EDGELATCH_GATEWAY"));
  const port = await openPort(gateway.socket);
  const close = async () => {
    port.close();
    await gateway.close();
  };
  return { url: gateway.url, token: gateway.token, port: port.number, close };
}

/** An edgelatch gateway with a Redis of its own; returns the addresses of both. */
async function startGateway(program) {
  const token = randomBytes(24).toString("hex");
  const env = { ...process.env, EDGELATCH_TOKENS: token };
  const child = spawn(program, ["--dev", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  const said = {};
  for await (const line of createInterface(child.stdout)) {
    said.socket ??= line.match(/^redis unix:(.+)$/)?.[1];
    said.url ??= line.match(/^listening on (\S+)$/)?.[1];
    if (said.url) break;
  }
  if (!said.url || !said.socket) throw new Error("the gateway did not start");
  const close = async () => {
    child.kill();
    await ended;
  };
  return { ...said, token, close };
}

/** A TCP port in front of a socket file, which Redisson cannot use. */
async function openPort(socket) {
  const open = new Set();
  const server = createServer({ noDelay: true }, (client) => {
    const redis = connect(socket);
    for (const [one, other] of [[client, redis], [redis, client]]) {
      open.add(one);
      // If either connection closes, the other one is closed too; the reason does not matter here.
      one.on("error", () => {}).on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const close = () => {
    server.close();
    open.forEach((one) => one.destroy());
  };
  return { number: server.address().port, close };
}
