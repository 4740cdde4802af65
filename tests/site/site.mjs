/** The built site: its files, its pages, and a server for browsers. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The checkout. */
export const root = fileURLToPath(new URL("../..", import.meta.url));
/** The folder of the site's build. */
const stage = required("EDGELATCH_SITE");
/** The folder of the built site. */
export const dist = join(stage, "dist");
/** The path below which the site is served. */
export const BASE = "/docs/";

/** The address of the source, and the groups of the sidebars of the guide and of the types. */
export const { api, repository, sidebar } = JSON.parse(readFileSync(join(stage, "contents.json"), "utf8"));

/** Every file of the site, by its path. */
export const files = readdirSync(dist, { recursive: true }).map((file) => file.replaceAll("\\", "/"));

/** Every page of the site: its path below `BASE`, and its text as HTML. */
export const pages = files
  .filter((file) => file.endsWith(".html") && file !== "404.html")
  .map((file) => ({ path: file.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, ""), html: readFileSync(join(dist, file), "utf8") }));

/** Imports one of the packages that the site is built with. */
export function packageOf(path) {
  return import(pathToFileURL(join(stage, "node_modules", path)));
}

/** Serves the site with VitePress' own server; returns its address and the server. */
export async function serveSite() {
  const { serve } = await packageOf("vitepress/dist/node/index.js");
  const { server } = await serve({ root: stage, port: 0 });
  if (!server.listening) await new Promise((done) => server.once("listening", done));
  return { address: `http://127.0.0.1:${server.address().port}${BASE}`, server };
}

export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}
