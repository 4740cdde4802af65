/** The package as npm installs it, without a bundler. */

import { join } from "node:path";

import { PAGE, PROGRAM, PROGRAM_CJS, html } from "../workshop.mjs";

const FILES = { "program.mjs": PROGRAM, "program.cjs": PROGRAM_CJS };
const DENO = ["run", "--allow-env", "--allow-net=127.0.0.1", "--allow-read", "--node-modules-dir=manual", "--no-lock"];

const inRuntime = (name, file, command) => ({
  name: `${name}, ${file.endsWith("cjs") ? "require" : "import"}`,
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project(`${name}-${file}`.replaceAll(" ", "-"), FILES);
    const [program, ...args] = command(workshop);
    await workshop.result(program, [...args, file], folder);
  },
});

const node = (version) => (workshop) => [join(workshop.folder, `node_modules/${version}/bin/node`)];
const tools = (name) => join(process.env.EDGELATCH_TOOLS, ".bin", name);
const RUNTIMES = {
  "Node 20": node("node20"),
  "Node 22": node("node22"),
  "Node 24": () => [process.execPath],
  Deno: () => [tools("deno"), ...DENO],
  Bun: () => [tools("bun"), "run"],
};

const page = (name, options, files) => ({
  name,
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project(name.replaceAll(/\W+/g, "-"), { "page.mjs": PAGE, ...files });
    // As on a static server: the package is beside the page.
    await workshop.run("cp", ["-a", join(workshop.folder, "node_modules/edgelatch"), join(folder, "edgelatch")], folder);
    await workshop.page(folder, options);
  },
});
const MAP = '<script type="importmap">{ "imports": { "edgelatch": "./edgelatch/index.js" } }</script>';
const DIRECT = { "page.mjs": PAGE.replace('"edgelatch"', '"./edgelatch/index.js"'), "index.html": html("page.mjs") };

export const environments = [
  ...Object.entries(RUNTIMES).flatMap(([name, command]) => ["program.mjs", "program.cjs"].map((file) => inRuntime(name, file, command))),
  page("browser, import map", {}, { "index.html": html("page.mjs", MAP) }),
  page("browser, plain module script", {}, DIRECT),
  page("browser, plain module script, strict CSP with 'wasm-unsafe-eval'", { strict: true }, DIRECT),
];
