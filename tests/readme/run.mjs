/**
 * Runs the programs of both READMEs, of `docs/scoped-tokens.md` and of the documentation site's
 * page of objects, as they stand there, on an empty Redis. The Rust program is a binary of
 * `tests/`; the SQL is that of `docs/fencing.md`, which `tests/recipes` runs.
 *
 * Environment: as `tests/runtimes/run.mjs`.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { openFront } from "../runtimes/front.mjs";
import { newProject, removeProjects, required } from "../runtimes/project.mjs";
import { startWorkerOf } from "../runtimes/worker.mjs";
import { openPage } from "./page.mjs";

const PAGES = ["README.md", "pkg/README.md", "site/pages/objects.md"];

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };

/** Runs and checks each program, by the name in its first line. */
const PROGRAMS = {
  "report.mjs": inRuntimes((output) => assert.match(output, /fencing token \d{16}\.\n$/)),
  "objects.mjs": inRuntimes((output) => {
    assert.match(output, /one writer\none of two printers\n\d+\n$/);
  }),
  "locks.mjs": inRuntimes((output) => {
    assert.match(output, /^holds it for 20 s at most: true\nanother acquisition has to wait\n17 false\n$/);
  }),
  "owner.mjs": inRuntimes((output) => assert.equal(output, "twice, one hold: true\n")),
  "fair-lock.mjs": inRuntimes((output) => assert.equal(output, "first\nsecond\n")),
  "read-write-lock.mjs": inRuntimes((output) => assert.equal(output, "readers: 2, a writer: null\none writer\n")),
  "several-locks.mjs": inRuntimes((output) => assert.equal(output, "a token for each: true\nseat 7b: null\n")),
  "semaphores.mjs": inRuntimes((output) => assert.equal(output, "left: 0\nleft: 2\n")),
  "latch.mjs": inRuntimes((output) => assert.equal(output, "left: 1, then 0\nall parts are done\n")),
  "guard.mjs": inRuntimes((output) => assert.equal(output, "true stale-token\nsent\n")),
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

/** As Next.js calls it; the suite `bundlers` builds both routes with Next.js itself. */
async function route({ path }) {
  Object.assign(process.env, env);
  const { POST } = await import(pathToFileURL(path));
  const { token } = await (await POST()).json();
  assert.ok(Number.isSafeInteger(token));
}

async function page({ t, folder }) {
  // The test of the other README closed its page while it held the lock.
  const free = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(["DEL", "draft:7"]) };
  assert.equal((await fetch(url, free)).status, 200);
  const front = await openFront(url);
  t.after(() => front.close());
  const tab = await openPage(t, folder, {
    "/lock-token": (_request, response) => response.end(JSON.stringify({ url: front.url, token })),
  });
  await tab.waitForFunction(() => document.body.textContent.includes("token"));
  assert.match(await tab.textContent("body"), /You may edit \(token \d{16}\)\./);
}

test("pkg/README.md has a row for each option of connect, with its default", async () => {
  const read = (file) => readFile(new URL(`../../pkg/${file}`, import.meta.url), "utf8");
  const [page, code, types] = await Promise.all(["README.md", "options.js", "index.d.ts"].map(read));
  const [, list] = /^const CLIENT = \[([^\]]+)\]/m.exec(code);
  const options = ["url", "token", ...JSON.parse(`[${list}]`)];
  const [, section] = page.split(/^## Connecting\n/m);
  const rows = section.split("\n## ")[0].matchAll(/^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$/gm);
  const defaults = new Map([...rows].map(([, option, value]) => [option, value.replaceAll("`", "")]));
  assert.deepEqual([...defaults.keys()].sort(), options.sort());
  for (const [option, value] of defaults) {
    const [, comment] = new RegExp(`\\/\\*\\*((?:(?!\\*\\/)[^])*)\\*\\/\\s+${option}\\??:`).exec(types);
    const described = comment.replaceAll(/[\s*`]+/g, " ");
    assert.ok(value === "required" || described.includes(`efault ${value.replaceAll('"', "")}`) || described.includes(`efault: ${value}`), option);
  }
});

const SCOPED = "docs/scoped-tokens.md";
describe(SCOPED, async () => {
  const text = await readFile(new URL(`../../${SCOPED}`, import.meta.url), "utf8");
  const programs = new Map([...text.matchAll(/^```js\n\/\/ (\S+)\n(.+?)^```$/gms)].map(([, name, source]) => [name, source]));
  test("every block of JavaScript is one of the three programs of a page with a scoped token", () => {
    assert.equal(programs.size, text.split("```js\n").length - 1);
    assert.deepEqual([...programs.keys()], ["scoped-token.js", "worker.js", "page.js"]);
  });
  test("the page takes the lock of its user with the token that the Worker has signed", async (t) => {
    const folder = await newProject();
    for (const [name, source] of programs) await writeFile(join(folder, name), source);
    // The reader's own function.
    const userOf = "\nconst userOf = (request) => (request.headers.has('cookie') ? { id: 7 } : null);\n";
    const path = join(folder, "worker.js");
    await writeFile(path, programs.get("worker.js") + userOf);
    const front = await openFront(url);
    t.after(() => front.close());
    const worker = await startWorkerOf(folder, path, { SCOPE_KEY: required("EDGELATCH_TEST_SCOPE_KEY"), GATEWAY_URL: front.url });
    t.after(() => worker.close());
    assert.equal((await fetch(worker.url, { method: "POST" })).status, 401);

    const saved = Promise.withResolvers();
    const routes = {
      "/lock-token": async (_request, response) => {
        const lent = await fetch(worker.url, { method: "POST", headers: { cookie: "user=7" } });
        response.end(await lent.text());
      },
      "/draft": (request, response) => {
        saved.resolve(request.headers["fencing-token"]);
        response.end();
      },
    };
    await openPage(t, folder, routes, saved.reject);
    assert.match(await saved.promise, /^\d{16}$/);
    assert.ok(front.owners("user-7:draft").size > 0);
  });
});
