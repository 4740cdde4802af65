/** A project with the packed package and the SDK of OpenTelemetry, and clients of it. */

import { randomUUID } from "node:crypto";
import { symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { newProject, required } from "../runtimes/project.mjs";

export const url = required("EDGELATCH_TEST_URL");
export const token = required("EDGELATCH_TEST_TOKEN");
/** The host in lines and attributes. */
export const { host } = new URL(url);
/** These tests assert no response time. */
const options = { url, token, requestTimeoutMs: 60_000 };

/** Returns a name that no other test uses; lines quote it. */
export const newName = () => `job "${randomUUID().slice(24)}"`;

/** Creates a project whose programs find the packages of OpenTelemetry too. */
export async function project() {
  const folder = await newProject();
  await symlink(join(required("EDGELATCH_TOOLS"), "@opentelemetry"), join(folder, "node_modules/@opentelemetry"));
  return folder;
}

let loaded;

/** Loads the entries of the package and the SDK from one project, once. */
export function load() {
  loaded ??= project().then(async (folder) => {
    const require = createRequire(join(folder, "resolve-from-here.js"));
    const entry = (name) => import(pathToFileURL(join(folder, "node_modules/edgelatch", name)));
    const [edgelatch, log, openTelemetry] = await Promise.all(["index.js", "log.js", "opentelemetry.js"].map(entry));
    return { edgelatch, ...log, ...openTelemetry, require, folder };
  });
  return loaded;
}

/**
 * Words of requests that no line and no attribute may contain: owners, request ids, hashes and
 * values.
 */
const secrets = new Set([token]);
const SECRET = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f-]{21}|[0-9a-f]{40}|[\w-]+-secret\b/g;

/** Options of a client whose requests are searched for secrets. */
export const watched = (more) => ({
  ...options,
  fetch: (input, init) => {
    for (const [secret] of init.body?.matchAll(SECRET) ?? []) secrets.add(secret);
    return fetch(input, init);
  },
  ...more,
});

/** Returns the secrets of requests so far that a text contains, and the number of known ones. */
export const leaks = (text) => ({ found: [...secrets].filter((secret) => text.includes(secret)), known: secrets.size });
