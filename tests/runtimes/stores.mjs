/** Runs the recipes of docs/fencing.md for D1 and R2, read from the page, in workerd. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { required } from "./project.mjs";

/** Must not be newer than the oldest workerd that the tools may install. */
const DATE = "2026-04-01";

/** Starts the Worker; returns functions that execute a recipe, and one that stops the Worker. */
export async function startStores() {
  const page = await readFile(new URL("../../docs/fencing.md", import.meta.url), "utf8");
  const tools = createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"));
  const { convertV4MiniflareOptions, Miniflare } = tools("miniflare");
  const program = await readFile(new URL("programs/stores.mjs", import.meta.url), "utf8");
  const modules = [
    { type: "ESModule", path: "stores.mjs", contents: program },
    { type: "ESModule", path: "put.mjs", contents: recipe(page, "js", "// put") },
  ];
  const options = { name: "stores", compatibilityDate: DATE, modules, d1Databases: ["DB"], r2Buckets: ["BUCKET"] };
  const worker = new Miniflare(convertV4MiniflareOptions(options));
  const send = async (request) => {
    const response = await worker.dispatchFetch("http://stores/", { method: "POST", body: JSON.stringify(request) });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  const statement = (title, values) => numbered(recipe(page, "sql", `-- ${title}`), values);
  return {
    /**
     * Executes recipes as one batch, `[title, values]` each; returns the number of rows that each
     * has changed.
     */
    sql: async (...recipes) => {
      const results = await send({ statements: recipes.map(([title, values = {}]) => statement(title, values)) });
      return results.map(({ changes }) => changes);
    },
    rows: async (sql) => (await send({ statements: [{ sql, values: [] }] }))[0].rows,
    /** Returns whether the put was executed. */
    put: async (key, body, token) => (await send({ put: [key, body, token] })).written,
    read: async (key) => (await (await worker.getR2Bucket("BUCKET")).get(key))?.text(),
    close: () => worker.dispose(),
  };
}

/** Returns the code block of the page that begins with this line. */
function recipe(page, language, title) {
  const begin = page.indexOf(`\`\`\`${language}\n${title}\n`);
  if (begin < 0) throw new Error(`docs/fencing.md has no recipe ${title}`);
  const block = page.slice(begin + language.length + 4);
  return block.slice(0, block.indexOf("\n```"));
}

/** D1 supports only numbered parameters. */
function numbered(sql, values) {
  const names = [];
  const text = sql.replace(/:([a-z]+)/g, (_, name) => {
    if (!names.includes(name)) names.push(name);
    return `?${names.indexOf(name) + 1}`;
  });
  return { sql: text, values: names.map((name) => values[name]) };
}
