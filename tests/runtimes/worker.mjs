/**
 * Bundles a Worker with wrangler, as users do, and serves it with workerd alone: `wrangler dev` is
 * a proxy that hides the client's disconnection from the Worker.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { newProject, required } from "./project.mjs";

/** Must not be newer than the oldest workerd that the tools may install. */
const DATE = "2026-04-01";

/** Without it a Worker does not detect that its client has disconnected. */
const FLAG = "enable_request_signal";

/**
 * The modules that wrangler creates from the suite's Worker: once in each process, since they do
 * not depend on the bindings.
 */
let bundled;

/**
 * Starts the suite's Worker with these V8 flags; returns its address, the folder of its project,
 * and a function that stops it.
 */
export function startWorker(bindings, flags = []) {
  bundled ??= newProject().then((folder) => bundle(folder, "tests/programs/worker.mjs"));
  return startBundled(bundled, bindings, flags);
}

/** Starts a Worker of this project, bundled from this file. */
export function startWorkerOf(folder, file, bindings) {
  return startBundled(bundle(folder, file), bindings, []);
}

async function startBundled(bundled, bindings, flags) {
  const [modules, folder] = await Promise.all([bundled, newProject()]);
  await cp(modules, join(folder, "bundle"), { recursive: true });
  await writeFile(join(folder, "workerd.capnp"), await configuration(folder, bindings, flags));
  const program = join(required("EDGELATCH_TOOLS"), "workerd/bin/workerd");
  const args = ["serve", "workerd.capnp", "--control-fd=3"];
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  const said = [];
  child.stderr.on("data", (text) => said.push(text));
  const close = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  };
  for await (const line of createInterface({ input: child.stdio[3] })) {
    const { event, port } = JSON.parse(line);
    if (event === "listen") return { url: `http://127.0.0.1:${port}`, folder, close, said };
  }
  throw new Error(`the Worker did not start: ${said.join("")}`);
}

/** Bundles a Worker with wrangler; returns the folder with its modules. */
async function bundle(folder, file) {
  const program = join(required("EDGELATCH_TOOLS"), "wrangler/bin/wrangler.js");
  const deploy = ["deploy", file, "--dry-run", "--outdir", "bundle", "--name", "edgelatch-runtime"];
  const args = [program, ...deploy, "--compatibility-date", DATE, "--compatibility-flags", FLAG];
  await promisify(execFile)(process.execPath, args, { cwd: folder, env: environment(folder) });
  return join(folder, "bundle");
}

/** Returns workerd's configuration for the Worker that wrangler would deploy. */
async function configuration(folder, bindings, flags) {
  const files = (await readdir(join(folder, "bundle"))).filter((name) => /\.(js|wasm)$/.test(name));
  // workerd runs the first module.
  const modules = files.sort().reverse().map((name) => {
    const kind = name.endsWith(".wasm") ? "wasm" : "esModule";
    return `(name = ${JSON.stringify(name)}, ${kind} = embed ${JSON.stringify(`bundle/${name}`)})`;
  });
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["local", "private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
  v8Flags = [${flags.map((flag) => JSON.stringify(flag)).join(", ")}],
);
const worker :Workerd.Worker = (
  modules = [${modules.join(", ")}],
  bindings = [${texts.join(", ")}],
  compatibilityDate = "${DATE}",
  compatibilityFlags = ["${FLAG}"],
);
`;
}

/** Returns an environment in which wrangler writes only to the folder and sends no telemetry. */
function environment(folder) {
  const below = (name) => join(folder, name);
  return {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_CONFIG_HOME: below(".config"),
    XDG_CACHE_HOME: below(".cache"),
    WRANGLER_REGISTRY_PATH: below(".registry"),
    WRANGLER_LOG_PATH: below(".log"),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    WRANGLER_HIDE_BANNER: "true",
    NO_COLOR: "1",
  };
}
