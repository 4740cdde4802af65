/**
 * Describes the environment of the figures: the machine, and the versions of the measured programs.
 */

import { readFileSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";

import { ROOT, run } from "./env.mjs";

const PACKAGES = ["@upstash/lock", "@upstash/redis", "redlock", "redis-semaphore", "ioredis"];
const UNKNOWN = "unknown";

const read = (file) => readFileSync(join(ROOT, file), "utf8");

/** Returns pairs of names and values. */
export async function describeMachine() {
  const installed = JSON.parse(read("xtask/tools/package-lock.json")).packages;
  const [, redisson] = /<redisson\.version>(.*?)</.exec(read("tests/interop/java/pom.xml")) ?? [];
  return [
    ["CPU", cpus()[0]?.model ?? UNKNOWN],
    ["cores", String(availableParallelism())],
    ["memory", `${(totalmem() / 1e9).toFixed(0)} GB`],
    ["system", `${type()} ${release()}`],
    ["edgelatch", JSON.parse(read("pkg/package.json")).version],
    ["Node", process.versions.node],
    ["Rust", await version("rustc", "--version")],
    ["Redis", await version("redis-server", "--version")],
    ["webdis", await version("dpkg-query", "-Wf", "${Version}", "webdis")],
    ["Java", await version("javac", "-version")],
    ["Redisson", redisson ?? UNKNOWN],
    ...PACKAGES.map((name) => [name, installed[`node_modules/${name}`]?.version ?? UNKNOWN]),
  ];
}

/** Returns the version in a program's output, without its name and other words. */
async function version(program, ...args) {
  const output = await run("version", program, args).catch(() => "");
  return /(?:^|[ =v])(\d\S*)/.exec(output)?.[1] ?? UNKNOWN;
}
