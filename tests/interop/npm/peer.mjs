/** The Java side: one JVM, controlled by lines of JSON. `Peer.java` documents the commands. */

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { soon, until } from "../../runtimes/check.mjs";

/** A time as an argument of a method. */
export const ms = (ms) => ({ ms });

/** An exception of a method of Redisson. */
export class Thrown extends Error {
  constructor({ error, message, cause }) {
    super(`${error}: ${message}`);
    this.javaClass = cause;
  }
}

/** Starts the JVM from the folder that `cargo xtask test interop` has built. */
export function startPeer(folder) {
  // The JVM runs for seconds only: a fast start matters more than fast code.
  const flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
  const classes = `${join(folder, "classes")}:${join(folder, "lib/*")}`;
  const java = spawn("java", [...flags, "-cp", classes, "edgelatch.peer.Peer"], { stdio: ["pipe", "pipe", "inherit"] });
  const pending = new Map();
  createInterface(java.stdout).on("line", (line) => {
    const { id, value, ...rest } = JSON.parse(line);
    const { resolve, reject } = pending.get(id);
    pending.delete(id);
    if (rest.error) reject(new Thrown(rest));
    else resolve(value);
  });
  const ended = new Promise((resolve) => java.on("close", resolve));
  ended.then(() => pending.forEach(({ reject }) => reject(new Error("the JVM has ended"))));
  let last = 0;
  const send = (command) =>
    new Promise((resolve, reject) => {
      last += 1;
      pending.set(last, { resolve, reject });
      java.stdin.write(`${JSON.stringify({ id: last, ...command })}\n`);
    });
  return {
    /**
     * Redisson clients of one service with these configurations, in Redisson's format. The first
     * client has the threads.
     */
    async open(configs) {
      const open = async (config) => {
        last += 1;
        const service = `service-${last}`;
        await send({ do: "open", service, config });
        return service;
      };
      return new Service(send, await Promise.all(configs.map(open)));
    },
    async close() {
      java.stdin.end();
      await ended;
    },
  };
}

/**
 * A Redisson client with its threads: one Java service. It may have further clients, of other Redis
 * servers.
 */
class Service {
  #send;
  #end;

  constructor(send, nodes) {
    /** The names of its clients. */
    this.nodes = nodes;
    this.#send = (command) => send({ ...command, service: nodes[0] });
    this.#end = () => Promise.all(nodes.map((service) => send({ do: "close", service })));
  }

  /** One of Redisson's objects, used by the thread of this name. */
  object(description, thread = "a") {
    const send = (command) => this.#send({ ...command, thread });
    return {
      /** Starts a call; it is pending when this returns. */
      call: (method, ...args) => soon(send({ do: "call", object: description, method, args }), `${method} of Java`),
      /** Waits until the thread is in one of Redisson's waits. */
      waits: () => until(() => send({ do: "waits" }), "Java waits"),
    };
  }

  /** Runs contending threads; `Contention.java` documents the command. It may take long. */
  contend(request) {
    return this.#send({ ...request, do: "contend" });
  }

  /** Ends like a service that is killed. */
  close() {
    return this.#end();
  }
}
