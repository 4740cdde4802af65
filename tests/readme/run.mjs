/**
 * Runs the programs of both READMEs, as they stand there, on an empty Redis. The Rust program is a
 * binary of `tests/`; the SQL is that of `docs/fencing.md`, which `tests/recipes` runs.
 *
 * Environment: as `tests/runtimes/run.mjs`.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { launch } from "../runtimes/browser.mjs";
import { openFront } from "../runtimes/front.mjs";
import { newProject, removeProjects, required } from "../runtimes/project.mjs";
import { startWorkerOf } from "../runtimes/worker.mjs";

const PAGES = ["README.md", "pkg/README.md"];
const TYPES = { ".js": "text/javascript", ".html": "text/html" };

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };

/** How each program is run and what it has to do, by the name in its first line. */
const PROGRAMS = {
  "report.mjs": inRuntimes((output) => assert.match(output, /fencing token \d{16}\.\n$/)),
  "objects.mjs": inRuntimes((output) => {
    assert.match(output, /one writer\nmany readers\none of two printers\n\d+\n$/);
  }),
  "worker.js": worker,
  "app/api/report/route.js": route,
  "page.js": page,
};

after(removeProjects);

for (const file of PAGES) {
  describe(file, async () => {
    const text = await readFile(new URL(`../../${file}`, import.meta.url), "utf8");
    const programs = [...text.matchAll(/^```js\n\/\/ (\S+)\n(.+?)^```$/gms)];
    test("every block of JavaScript is a program with a name", () => {
      assert.equal(programs.length, text.split("```js\n").length - 1);
      assert.deepEqual(programs.map(([, name]) => name).filter((name) => !PROGRAMS[name]), []);
    });
    test("every statement of SQL is one of docs/fencing.md, which are tested", async () => {
      const fencing = await readFile(new URL("../../docs/fencing.md", import.meta.url), "utf8");
      const statements = [...text.matchAll(/^```sql\n(.+?)^```$/gms)].map(([, statement]) => statement);
      assert.deepEqual(statements.filter((statement) => !fencing.includes(`\n${statement}`)), []);
      assert.equal(statements.length, file.startsWith("pkg/") ? 1 : 0);
    });
    for (const [, name, source] of programs) {
      test(name, async (t) => {
        const folder = await newProject();
        const path = join(folder, name);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, source);
        await PROGRAMS[name]?.({ t, folder, path });
      });
    }
  });
}

function inRuntimes(check) {
  const runtimes = {
    Node: [process.execPath],
    Deno: [join(tools, ".bin/deno"), "run", "--allow-env", "--allow-net=127.0.0.1"],
    Bun: [join(tools, ".bin/bun"), "run"],
  };
  return async ({ folder, path }) => {
    for (const [program, ...args] of Object.values(runtimes)) {
      const variables = { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1", ...env };
      const { stdout, stderr } = await promisify(execFile)(program, [...args, path], { cwd: folder, env: variables });
      assert.equal(stderr, "");
      check(stdout);
    }
  };
}

async function worker({ t, folder, path }) {
  const { url: address, close } = await startWorkerOf(folder, path, env);
  t.after(() => close());
  const answer = await fetch(address);
  assert.deepEqual([answer.status, /^paid under token \d{16}$/.test(await answer.text())], [200, true]);
}

/** As Next.js calls it; the suite `bundlers` builds it with Next.js itself. */
async function route({ path }) {
  Object.assign(process.env, env);
  const { POST } = await import(pathToFileURL(path));
  const { token } = await (await POST()).json();
  assert.ok(Number.isSafeInteger(token));
}

async function page({ t, folder }) {
  // The page of the other README was closed while it held the lock.
  const free = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(["DEL", "draft:7"]) };
  assert.equal((await fetch(url, free)).status, 200);
  const front = await openFront(url);
  t.after(() => front.close());
  const imports = { edgelatch: "/node_modules/edgelatch/index.js" };
  const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>
<script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="/page.js"></script>`;
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (pathname === "/lock-token") return void response.end(JSON.stringify({ url: front.url, token }));
    const body = pathname === "/" ? html : await readFile(join(folder, pathname));
    response.writeHead(200, { "content-type": TYPES[extname(pathname)] ?? "text/html" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  const browser = await launch();
  t.after(() => browser.close());
  const tab = await browser.newPage();
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  await tab.waitForFunction(() => document.body.textContent.includes("token"));
  assert.match(await tab.textContent("body"), /You may edit \(token \d{16}\)\./);
}
