/** Tests the links of the built site: each leads to a page, to a heading in it, or to a file. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { PICTURES } from "../../site/pictures.mjs";
import { BASE, dist, api, files, pages, repository, root, sidebar } from "./site.mjs";

/** The other hosts that pages may link to. */
const HOSTS = new Set([
  "docs.rs", "github.com", "redis.io", "redisson.org", "upstash.com", "www.npmjs.com", "crates.io", "vitepress.dev",
  "developers.cloudflare.com", "developer.mozilla.org", "www.typescriptlang.org", "martin.kleppmann.com",
  "antirez.com", "opentelemetry.io", "redisson.pro", "w3c.github.io",
]);

const byPath = new Map(pages.map((page) => [page.path, page]));

test("every link leads to a page and a heading of the site, or to a file of the repository", () => {
  const broken = [];
  let links = 0;
  for (const { path, html } of pages) {
    for (const link of linksOf(html)) {
      links += 1;
      const fault = faultOf(new URL(link, `https://site${BASE}${path}`));
      if (fault !== null) broken.push(`${path}: ${link}: ${fault}`);
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(links > 1_000, `${links} links`);
});

test("every page of docs/ is on the site, and in its sidebar", () => {
  const linked = new Set(sidebar.flatMap(({ items }) => items.map(({ link }) => link.slice(1))));
  const names = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  assert.ok(names.length > 10);
  for (const name of names) {
    const [, title] = /^# (.+)$/m.exec(readFileSync(join(root, "docs", name), "utf8"));
    const page = pages.find(({ path, html }) => linked.has(path) && html.includes(`${escape(title.replaceAll("`", ""))} <a class="header-anchor"`));
    assert.ok(page, `${name}, "${title}"`);
  }
});

test("every object and error of the npm package has a page", () => {
  const index = readFileSync(join(root, "pkg/index.d.ts"), "utf8");
  const [, names] = /export type \{([^}]+)\} from ".\/objects.js"/.exec(index);
  const errors = readFileSync(join(root, "pkg/errors.d.ts"), "utf8");
  const classes = [...errors.matchAll(/^export (?:declare )?class (\w+)/gm)].map(([, name]) => name);
  const expected = [...names.split(",").map((name) => name.trim()).filter(Boolean), ...classes];
  assert.ok(expected.length > 20, `${expected}`);
  const missing = expected.filter((name) => !pages.some(({ path }) => path.startsWith("api/") && path.endsWith(`/${name}`)));
  assert.deepEqual(missing, []);
});

test("every entry point of the npm package has pages, and the guide links to them", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  // The other paths are those of files: the module as bytes, and the manifest.
  const paths = Object.keys(exports).filter((path) => path !== "./edgelatch.wasm" && path !== "./package.json");
  assert.ok(paths.length > 7, `${paths}`);
  assert.deepEqual(api.map(({ text }) => text), paths.map((path) => `edgelatch${path.slice(1)}`));
  const guide = pages.filter(({ path }) => !path.startsWith("api/"));
  for (const { text, link, items } of api) {
    assert.ok(items.length > 0, text);
    assert.ok(guide.some(({ html }) => html.includes(`<a href="${BASE}${link.slice(1)}"`)), `a link to ${link}`);
  }
});

test("every name that log, opentelemetry, testing and web-locks export has a page", () => {
  for (const entry of ["log", "opentelemetry", "testing", "web-locks"]) {
    const types = readFileSync(join(root, `pkg/${entry}.d.ts`), "utf8");
    const names = [...types.matchAll(/^export (?:const|function|interface|type) (\w+)/gm)].map(([, name]) => name);
    assert.ok(names.length > 1, `${entry}: ${names}`);
    const missing = names.filter((name) => !pages.some(({ path }) => path.startsWith(`api/${entry}/`) && path.endsWith(`/${name}`)));
    assert.deepEqual(missing, [], entry);
  }
});

test("the page of edgelatch/opentelemetry knows the types of its peer dependency", () => {
  const { html } = pages.find(({ path }) => path === "api/opentelemetry/interfaces/InstrumentOptions");
  assert.match(html, /TracerProvider/);
  assert.match(html, /MeterProvider/);
});

test("every row of the comparison names what shows it", () => {
  const page = readFileSync(join(root, "site/pages/comparison.md"), "utf8");
  const [, table, list] = page.split(/^## (?:Properties|What shows each row)\n/m);
  const rows = [...table.matchAll(/^\| ([^|]+?) \|/gm)].map(([, row]) => row);
  assert.ok(rows.length > 10, `${rows}`);
  const items = [...list.matchAll(/^\* \*\*(.+?)\*\*:([^]+?)(?=^\* |\n\n)/gm)];
  assert.deepEqual(items.map(([, row]) => row), rows);
  // A test, or a link to a page.
  for (const [, row, text] of items) assert.match(text, /`\S+::|\]\(/, row);
});

test("every scenario of a picture is one of docs/reliability.md", () => {
  const page = readFileSync(join(root, "docs/reliability.md"), "utf8");
  for (const [name, { scenarios }] of Object.entries(PICTURES)) {
    assert.ok(scenarios.length > 0, name);
    for (const number of scenarios) assert.ok(page.includes(`\n| S${number} | `), `${name}: S${number}`);
  }
});

test("a page of the site shows JavaScript and Rust only from files that a suite runs", () => {
  const run = ["site/pages/objects.md", "site/pages/red-lock.md"];
  const folder = join(root, "site/pages");
  const own = readdirSync(folder, { recursive: true }).map((file) => `site/pages/${file}`).filter((file) => file.endsWith(".md"));
  assert.ok(own.length > 10);
  for (const file of own.filter((file) => !run.includes(file))) {
    assert.doesNotMatch(readFileSync(join(root, file), "utf8"), /^```(js|ts|mjs|rust)/m, file);
  }
});

function linksOf(html) {
  return [...html.matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]+)"/g)].map(([, link]) => link.replaceAll("&amp;", "&"));
}

/** Returns what is wrong with a link, or null. */
function faultOf(url) {
  if (url.hostname !== "site") return faultOfForeign(url);
  if (!url.pathname.startsWith(BASE)) return url.pathname === "/" ? null : "outside of the site";
  const path = decodeURIComponent(url.pathname.slice(BASE.length));
  const page = byPath.get(path) ?? byPath.get(`${path}/`);
  if (page === undefined) return files.includes(path) && existsSync(join(dist, path)) ? null : "no such page";
  const anchor = decodeURIComponent(url.hash.slice(1));
  return anchor === "" || page.html.includes(` id="${escape(anchor)}"`) ? null : "no such heading";
}

function faultOfForeign(url) {
  if (url.protocol !== "https:") return "not https";
  const source = `${repository}/tree/main/`;
  if (!url.href.startsWith(source)) return HOSTS.has(url.hostname) ? null : "an unknown host";
  return existsSync(join(root, decodeURIComponent(url.pathname.slice(new URL(source).pathname.length)))) ? null : "no such file";
}

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
