/**
 * Runs the suite on a page of a browser: by import map, slim, and bundled under a strict policy.
 * Starts Chromium.
 */

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

import { newProject, required } from "./project.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

const STRICT = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";

/**
 * The ways to load the package. `loads` lists the page's calls while it loads: with `slim` the
 * fetch of the module, which is the page's own.
 */
export const ways = [
  { name: "import map", map: "/node_modules/edgelatch/index.js", loads: [] },
  { name: "slim", map: "/tests/programs/slim.mjs", loads: ["fetch", "WebAssembly.compileStreaming", "WebAssembly.Instance"] },
  { name: "bundled for browsers, strict policy", bundle: { platform: "browser" }, loads: [] },
  { name: "bundled for anywhere, strict policy", bundle: { platform: "neutral", minify: false }, loads: [] },
];

/**
 * Runs the suite, or the way's own program, on a page that loads the package in this way. Calls
 * `report` with each event, and returns `{ complaints, stored }` at the end.
 */
export async function runPage(browser, way, { url, token, only, report }) {
  const folder = await newProject();
  if (way.bundle) await bundle(folder, { ...way.bundle, ...browser.bundle });
  const server = await serve(folder, way, url, browser.script);
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (/Content Security Policy|CORS/.test(message.text())) complaints.push(message.text());
    });
    const { promise: finished, resolve, reject } = Promise.withResolvers();
    page.on("pageerror", reject);
    page.on("crash", () => reject(new Error("the page crashed")));
    await page.exposeFunction("report", report);
    await page.exposeFunction("finish", resolve);
    const query = new URLSearchParams({ url, token, loads: way.loads.join(), ...(only && { only }) });
    await page.goto(`${server.url}/page.html?${query}`, { timeout: 0 });
    await finished;
    return { complaints, stored: await page.evaluate(whatIsStored) };
  } finally {
    await context.close();
    server.close();
  }
}

/**
 * Returns the page's storage, which must hold nothing that a copy of the tab could start from. Runs
 * in the page.
 */
async function whatIsStored() {
  const databases = (await indexedDB.databases()).map(({ name }) => name);
  return [...Object.keys(localStorage), ...Object.keys(sessionStorage), ...databases, ...(await caches.keys()), document.cookie].filter(Boolean);
}

export function launch() {
  const { chromium } = tool("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // The browser must keep pages in its back/forward cache, as it does for users.
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
    args: [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

async function bundle(folder, options) {
  await tool("esbuild").build({
    absWorkingDir: folder,
    entryPoints: ["tests/programs/page.mjs"],
    outfile: "bundle/page.mjs",
    bundle: true,
    format: "esm",
    minify: true,
    mainFields: ["module", "main"],
    logLevel: "silent",
    ...options,
  });
}

/**
 * Serves the files of a project, and a page that runs one of its programs, after `first`, a script
 * that a browser may need.
 */
export async function serve(folder, way, gateway, first) {
  const script = way.bundle ? "/bundle/page.mjs" : `/tests/programs/${way.program ?? "page.mjs"}`;
  const entry = (name) => [`edgelatch/${name}`, `/node_modules/edgelatch/${name}.js`];
  const imports = { edgelatch: way.map, ...Object.fromEntries([entry("slim"), entry("web-locks")]) };
  const map = way.bundle ? "" : `<script type="importmap">${JSON.stringify({ imports })}</script>`;
  const before = first ? `<script src="${first}"></script>` : "";
  const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${before}${map}<script type="module" src="${script}"></script>`;
  const policy = way.bundle ? { "content-security-policy": `${STRICT} ${gateway}; img-src data:` } : {};
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const body = pathname === "/page.html" ? html : await readFile(join(folder, pathname)).catch(() => null);
    const type = TYPES[extname(pathname)] ?? "application/octet-stream";
    response.writeHead(body === null ? 404 : 200, { "content-type": type, ...policy }).end(body ?? "");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

export function tool(name) {
  return createRequire(join(required("EDGELATCH_TOOLS"), "resolve-from-here.js"))(name);
}
