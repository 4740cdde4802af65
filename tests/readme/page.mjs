/** Serves a program as a page, with some routes of its own, and opens it in a browser. */

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import { launch } from "../runtimes/browser.mjs";

const TYPES = { ".js": "text/javascript", ".html": "text/html" };
const IMPORTS = { edgelatch: "/node_modules/edgelatch/index.js" };
const HTML = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script><script type="module" src="/page.js"></script>`;

/**
 * Opens a page with the program `page.js` of this project; returns the browser's page. Calls
 * `onError` with an error that the program does not catch.
 */
export async function openPage(t, folder, routes, onError = () => {}) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (routes[pathname]) return void (await routes[pathname](request, response));
    const body = pathname === "/" ? HTML : await readFile(join(folder, pathname));
    response.writeHead(200, { "content-type": TYPES[extname(pathname)] ?? "text/html" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  const browser = await launch();
  t.after(() => browser.close());
  const tab = await browser.newPage();
  tab.on("pageerror", onError);
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  return tab;
}
