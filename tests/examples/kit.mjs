/** Starts the programs of `examples/` by the commands of their READMEs. */

import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { until } from "../runtimes/check.mjs";
import { required } from "../runtimes/project.mjs";

export const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

/** The gateway of all tests, as the programs and `connect` expect it. */
export const GATEWAY = { url: required("EDGELATCH_TEST_URL"), token: required("EDGELATCH_TEST_TOKEN") };
export const ENV = { UPSTASH_REDIS_REST_URL: GATEWAY.url, UPSTASH_REDIS_REST_TOKEN: GATEWAY.token };

/** A build that takes longer hangs. This is no statement about how long it should take. */
const BUILD_MS = 1_200_000;

/** The address that a server prints when it is ready. */
const ADDRESS = /(?:listening on|Ready on|Local:) +(http:\/\/\S+)\s/;

/**
 * Returns the command that starts an example: the last line of a block of its README, by default of
 * the first. The lines above install what it needs.
 */
export async function commandOf(name, block = 0) {
  const readme = await readFile(join(EXAMPLES, name, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```sh\n(.+?)^```$/gms)].map(([, text]) => text.trimEnd().split("\n"));
  return blocks[block]?.at(-1);
}

/** Copies an example into the folder that has its packages installed; returns the copy. */
export function stage(workshop, name, copy = name) {
  return workshop.copy(join(EXAMPLES, name), copy);
}

/**
 * Starts an example in its folder by a command, by default that of its README. It runs until the
 * test ends.
 */
export async function start(t, workshop, folder, { command, env } = {}) {
  const line = command ?? (await commandOf(basename(folder)));
  const { close, said, ended } = workshop.launch("sh", ["-c", line], folder, { ...ENV, PORT: "0", ...env });
  t.after(close);
  const text = () => said.join("");
  return {
    text,
    /** Every match of a global pattern in the output so far. */
    all: (pattern) => [...text().matchAll(pattern)],
    /** Waits for the pattern in the output, and returns the match. */
    match: (pattern) => seen(() => text().match(pattern), `${line}: ${pattern}`, text, ended),
    /** Waits until the server is built and ready, and returns its address. */
    async address() {
      const [, address] = await seen(() => text().match(ADDRESS), `${line}: an address`, text, ended, BUILD_MS);
      return address.replace(/\/$/, "");
    },
  };
}

/** Runs a command of a staged example to its end; returns its output. */
export function run(workshop, folder, command, env) {
  return workshop.run("sh", ["-c", command], folder, { ...ENV, ...env });
}

/** Waits for a condition on the output of programs; a failure shows the output. */
export async function seen(condition, what, text, ended, waitMs) {
  try {
    return await Promise.race([until(condition, what, waitMs), ...(ended ? [ended] : [])]);
  } catch (error) {
    throw new Error(`${error.message}; the output:\n${text()}`, { cause: error });
  }
}

/** Sends a request; returns the status and the body, parsed if it is JSON. */
export async function call(method, address, { headers, body } = {}) {
  const response = await fetch(address, { method, headers, body });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
}
