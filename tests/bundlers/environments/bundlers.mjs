/** Bundlers, for servers and for pages. Their output runs far from the packages. */

import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { PAGE, PROGRAM, html } from "../workshop.mjs";

const SOURCES = { "program.mjs": PROGRAM, "page.mjs": PAGE, "index.html": html("/page.mjs") };
const slug = (name) => name.replaceAll(/\W+/g, "-");

const tools = (name) => join(process.env.EDGELATCH_TOOLS, ".bin", name);
const ofTools = (name) => createRequire(join(process.env.EDGELATCH_TOOLS, "x.js"))(name);
const imported = (workshop, name) => import(pathToFileURL(createRequire(join(workshop.folder, "x.js")).resolve(name)));

/**
 * Declares a bundler that builds into `out/` of a project, and runs the one file that counts there.
 */
const server = (name, file, build, extent = "full", command = [process.execPath]) => ({
  name,
  extent,
  async run(workshop) {
    const folder = await workshop.project(slug(name), SOURCES);
    await build(folder, workshop);
    const apart = await workshop.apart(join(folder, "out"), slug(name));
    await workshop.result(command[0], [...command.slice(1), join(apart, file)], apart);
  },
});

/**
 * Declares a bundler that builds into `out/` of a project, and opens a page there under a strict
 * policy.
 */
const browser = (name, build, { script = "page.js", type = "module", extent = "full" } = {}) => ({
  name,
  extent,
  async run(workshop) {
    const folder = await workshop.project(slug(name), SOURCES);
    await build(folder, workshop);
    const apart = await workshop.apart(join(folder, "out"), slug(name));
    await writeFile(join(apart, "index.html"), html(`/${script}`, "", type));
    await workshop.page(apart, { strict: true });
  },
});

const esbuild = (entry, options) => async (folder) => {
  await ofTools("esbuild").build({ absWorkingDir: folder, entryPoints: [entry], outdir: "out", bundle: true, logLevel: "silent", ...options });
};

const bun = (entry, ...args) => (folder, workshop) => workshop.run(tools("bun"), ["build", entry, ...args], folder);

const rollup = (entry, resolve, output) => async (folder, workshop) => {
  const { rollup } = await imported(workshop, "rollup");
  const { nodeResolve } = await imported(workshop, "@rollup/plugin-node-resolve");
  const build = await rollup({ input: join(folder, entry), plugins: [nodeResolve(resolve)] });
  await build.write({ dir: join(folder, "out"), format: "es", ...output });
};

const webpack = (entry, target) => async (folder, workshop) => {
  const { default: pack } = await imported(workshop, "webpack");
  // webpack warns about every page that loads more than 244 KiB.
  const config = { mode: "production", performance: false, context: folder, entry: `./${entry}`, target, output: { path: join(folder, "out"), filename: entry.replace(".mjs", ".js") } };
  const stats = await new Promise((resolve, reject) => pack(config, (error, stats) => (error ? reject(error) : resolve(stats))));
  if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString());
};

/** A page that does its work in a web worker. */
const WORKER_PAGE = `const worker = new Worker("/page.js");
worker.onmessage = ({ data }) => (document.title = data);
worker.postMessage(location.search);
`;
const IN_WORKER = `import * as edgelatch from "edgelatch";
import { use } from "./use.mjs";
onmessage = ({ data }) =>
  use(edgelatch, Object.fromEntries(new URLSearchParams(data))).then(postMessage, (error) => postMessage("error " + error.stack));
`;

const vite = (name, build, check) => ({
  name,
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project(slug(name), SOURCES);
    await build(folder, workshop);
    await check(folder, workshop);
  },
});
const viteBuild = (...args) => (folder, workshop) => workshop.tool("vite/bin/vite.js", ["build", "--outDir", "out", ...args], folder);

export const environments = [
  server("esbuild --platform=node --format=esm", "program.mjs", esbuild("program.mjs", { platform: "node", format: "esm", outExtension: { ".js": ".mjs" } }), "quick"),
  server("esbuild --platform=node --format=cjs", "program.cjs", esbuild("program.mjs", { platform: "node", format: "cjs", outExtension: { ".js": ".cjs" } }), "quick"),
  server("esbuild --platform=neutral", "program.mjs", esbuild("program.mjs", { platform: "neutral", format: "esm", mainFields: ["module", "main"], outExtension: { ".js": ".mjs" } })),
  browser("esbuild --platform=browser", esbuild("page.mjs", { platform: "browser", format: "iife", minify: true }), { type: "text/javascript", extent: "quick" }),
  browser("esbuild --platform=browser --splitting", esbuild("page.mjs", { platform: "browser", format: "esm", splitting: true })),
  server("bun build --target=node", "program.js", bun("program.mjs", "--target=node", "--outdir=out")),
  server("bun build --target=bun", "program.js", bun("program.mjs", "--target=bun", "--outdir=out"), "full", [tools("bun"), "run"]),
  server("bun build --compile", "program", bun("program.mjs", "--compile", "--outfile=out/program"), "full", ["/usr/bin/env"]),
  browser("bun build --target=browser", bun("page.mjs", "--target=browser", "--outdir=out")),
  server("rollup", "program.mjs", rollup("program.mjs", {}, { entryFileNames: "[name].mjs" })),
  server("rollup, condition node", "program.mjs", rollup("program.mjs", { exportConditions: ["node"] }, { entryFileNames: "[name].mjs" })),
  browser("rollup, browser: true", rollup("page.mjs", { browser: true })),
  server("webpack, node", "program.js", webpack("program.mjs", "node")),
  browser("webpack, web", webpack("page.mjs", "web"), { type: "text/javascript" }),
  browser("webpack, webworker", async (folder, workshop) => {
    await writeFile(join(folder, "page.mjs"), IN_WORKER);
    await webpack("page.mjs", "webworker")(folder, workshop);
    await writeFile(join(folder, "out/main.js"), WORKER_PAGE);
  }, { script: "main.js", type: "text/javascript" }),
  vite("vite build", viteBuild(), (folder, workshop) => workshop.page(join(folder, "out"), { strict: true })),
  vite("vite build --ssr", viteBuild("--ssr", "program.mjs"), async (folder, workshop) => {
    // The bundler leaves the package as an import, as on servers.
    await workshop.result(process.execPath, ["out/program.js"], folder);
  }),
  vite("vite build --ssr, noExternal", async (folder, workshop) => {
    await writeFile(join(folder, "vite.config.js"), "export default { ssr: { noExternal: true } };\n");
    await viteBuild("--ssr", "program.mjs")(folder, workshop);
  }, async (folder, workshop) => {
    const apart = await workshop.apart(join(folder, "out"), "vite-ssr");
    await writeFile(join(apart, "package.json"), '{ "type": "module" }');
    await workshop.result(process.execPath, ["program.js"], apart);
  }),
  vite("vite dev", async () => {}, async (folder, workshop) => {
    const port = await freePort();
    const args = [join(workshop.folder, "node_modules/vite/bin/vite.js"), "--port", String(port), "--host", "127.0.0.1", "--strictPort"];
    const dev = await workshop.serve(process.execPath, args, folder, `http://127.0.0.1:${port}/`);
    try {
      await workshop.open(`http://127.0.0.1:${port}/`);
    } finally {
      dev.close();
    }
  }),
];

/** Returns a port that is free now. */
async function freePort() {
  const { createServer } = await import("node:net");
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
