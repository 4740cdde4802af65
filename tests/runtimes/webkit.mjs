/**
 * Starts WebKitGTK's browser on a display of its own, and drives it by WebDriver. The objects have
 * the methods of Playwright's that `runPage` calls.
 *
 * A WebDriver has no calls from a page to the driver: the page puts events into a queue
 * (`programs/channel.mjs`), and the driver executes a script that waits for the next ones.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** The pause between two questions whether the driver has started. */
const POLL_MS = 50;

export async function launchWebKit() {
  // The server chooses a free display, and writes its number to the file descriptor 3.
  const server = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp"], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const [number] = await Promise.race([once(server.stdio[3], "data"), failure(server, "Xvfb")]);
  const env = { ...process.env, DISPLAY: `:${String(number).trim()}`, GDK_BACKEND: "x11", LIBGL_ALWAYS_SOFTWARE: "1" };
  return {
    script: "/tests/programs/channel.js",
    // It cannot parse `await using`, which a bundler compiles for it.
    bundle: { target: "safari18" },
    newContext: () => newContext(env),
    close: () => server.kill(),
  };
}

/** Starts a driver with one browser: it has one session at a time. */
async function newContext(env) {
  const port = await freePort();
  const driver = spawn("WebKitWebDriver", ["--host=127.0.0.1", `--port=${port}`], { env, stdio: "ignore" });
  const send = (method, path, body) => exchange(port, method, path, body);
  await Promise.race([untilReady(send), failure(driver, "WebKitWebDriver")]);
  const { sessionId } = await send("POST", "/session", { capabilities: {} });
  const session = (method, path, body) => send(method, `/session/${sessionId}${path}`, body);
  await session("POST", "/timeouts", { script: null, pageLoad: 3_600_000 });
  return {
    newPage: async () => new Page(session),
    close: async () => {
      await session("DELETE", "").catch(() => {});
      driver.kill();
    },
  };
}

class Page {
  #session;
  #handlers = new Map();
  #functions = new Map();

  constructor(session) {
    this.#session = session;
  }

  on(event, handler) {
    this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]);
  }

  /** The page calls the function by an event of its name. */
  async exposeFunction(name, run) {
    this.#functions.set(name, run);
  }

  async goto(url) {
    await this.#session("POST", "/url", { url });
    this.#receive().catch((error) => this.#emit("crash", error));
  }

  async evaluate(run) {
    return await this.#execute(`(${run})().then(arguments[0])`);
  }

  /** Receives events until the page has called `finish`. */
  async #receive() {
    for (let isOver = false; !isOver; ) {
      for (const { name, value } of await this.#execute("nextEvents(arguments[0])")) {
        isOver ||= name === "finish";
        await this.#functions.get(name)?.(value);
        if (name === "error") this.#emit("pageerror", new Error(value));
        if (name === "violation") this.#emit("console", { text: () => `Content Security Policy: ${value}` });
      }
    }
  }

  #execute(script) {
    return this.#session("POST", "/execute/async", { script, args: [] });
  }

  #emit(event, value) {
    for (const handler of this.#handlers.get(event) ?? []) handler(value);
  }
}

async function untilReady(send) {
  while (!(await send("GET", "/status").then(({ ready }) => ready, () => false))) await pause(POLL_MS);
}

/** Rejects when a program cannot be started or ends. */
function failure(program, name) {
  const { promise, reject } = Promise.withResolvers();
  program.once("error", reject);
  program.once("exit", (code, signal) => reject(new Error(`${name} ended: ${signal ?? code}`)));
  // It also ends when the tests end it.
  promise.catch(() => {});
  return promise;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Sends a command, and waits for its result as long as it takes: `fetch` gives up after five
 * minutes.
 */
async function exchange(port, method, path, body) {
  const text = body && JSON.stringify(body);
  const headers = text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {};
  const sent = request({ host: "127.0.0.1", port, method, path, headers });
  sent.end(text);
  const [response] = await once(sent, "response");
  const { value } = JSON.parse((await response.toArray()).join(""));
  if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${value?.error}: ${value?.message}`);
  return value;
}
