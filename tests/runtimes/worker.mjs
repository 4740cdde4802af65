/** A Worker in workerd by wrangler, in the project that this makes. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { newProject, required } from "./project.mjs";

/** Starts the Worker; answers its address, the folder of its project, and how to end it. */
export async function startWorker({ url, token }) {
  const folder = await newProject();
  await copyFile(join(folder, "tests/programs/wrangler.toml"), join(folder, "wrangler.toml"));
  await writeFile(join(folder, ".dev.vars"), `EDGELATCH_TEST_URL="${url}"\nEDGELATCH_TEST_TOKEN="${token}"\n`);
  const program = join(required("EDGELATCH_TOOLS"), "wrangler/bin/wrangler.js");
  const args = ["dev", "--local", "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0"];
  const options = { cwd: folder, env: environment(folder), stdio: ["ignore", "pipe", "pipe"], detached: true };
  const child = spawn(process.execPath, [program, ...args, "--show-interactive-dev-session=false"], options);
  const said = [];
  child.stderr.on("data", (text) => said.push(text));
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    // wrangler and the workerd that it started are a group of their own.
    process.kill(-child.pid, "SIGTERM");
    await once(child, "exit");
  };
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    const [, address] = /Ready on (\S+)/.exec(line) ?? [];
    if (address) {
      child.stdout.resume();
      return { url: address, folder, close };
    }
  }
  throw new Error(`the Worker did not start: ${said.join("\n")}`);
}

/** Everything that wrangler keeps stays in the folder, and nothing is told to anybody. */
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
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    NO_COLOR: "1",
    FORCE_COLOR: "0",
  };
}
