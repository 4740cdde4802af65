/** A separate process that holds a lock, for tests that stop or kill it. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { newProject } from "./project.mjs";

/**
 * Starts the process, and returns once it holds the lock. The result has the fields of its first
 * report; `requestReport` returns a report on its present state.
 */
export async function startHolder(env, name, leaseMs) {
  const cwd = await newProject();
  const variables = { PATH: process.env.PATH, HOLDER_NAME: name, HOLDER_LEASE_MS: leaseMs, ...env };
  const child = spawn(process.execPath, ["tests/programs/holder.mjs"], { cwd, env: variables, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextReport = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the holder has ended");
    return JSON.parse(value);
  };
  return {
    ...(await nextReport()),
    signal: (name) => child.kill(name),
    requestReport: () => (child.stdin.write("\n"), nextReport()),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
