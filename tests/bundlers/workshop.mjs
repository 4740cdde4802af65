/**
 * A folder with the tools and the packed package installed, as in a monorepo, and projects below
 * it.
 */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { promisify } from "node:util";

import { launch } from "../runtimes/browser.mjs";
import { openFront } from "../runtimes/front.mjs";
import { required } from "../runtimes/project.mjs";
import { EXPECTED } from "./use.mjs";

const start = promisify(execFile);

/** A build that takes longer hangs. This is no statement about how long it should take. */
const PATIENCE_MS = 600_000;

const TYPES = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/** A strict Content Security Policy for pages. */
const STRICT = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; img-src data:; connect-src 'self'";

/** The parts that all environments share. */
export class Workshop {
  /** Opens a folder with the packages of `tools`, a `node_modules` beside its list, if any. */
  static async open({ tools }) {
    const folder = await mkdtemp(join(tmpdir(), "edgelatch-bundlers-"));
    const unpacked = join(folder, "node_modules/edgelatch");
    if (tools) {
      for (const file of ["package.json", "package-lock.json"]) await cp(join(dirname(tools), file), join(folder, file));
      // Hard links, since some bundlers follow no link out of the project; copies if the file
      // system has no hard links.
      await start("cp", ["-al", tools, folder]).catch(() => start("cp", ["-a", tools, folder]));
    }
    await mkdir(unpacked, { recursive: true });
    await start("tar", ["-xzf", required("EDGELATCH_TARBALL"), "-C", unpacked, "--strip-components=1"]);
    const front = await openFront(required("EDGELATCH_TEST_URL"));
    return Object.assign(new Workshop(), { folder, front, token: required("EDGELATCH_TEST_TOKEN"), url: required("EDGELATCH_TEST_URL") });
  }

  async close() {
    await this.browser?.close();
    this.front.close();
    for (const folder of [this.folder, `${this.folder}-home`]) await rm(folder, { recursive: true, force: true });
  }

  /** Creates a project with these files, by their paths, and with `use.mjs`. */
  async project(name, files) {
    const folder = join(this.folder, "projects", name);
    await mkdir(folder, { recursive: true });
    await cp(new URL("use.mjs", import.meta.url), join(folder, "use.mjs"));
    const manifest = { name: "user", private: true, type: "module" };
    const all = { "package.json": JSON.stringify(manifest), ...files };
    for (const [path, text] of Object.entries(all)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    return folder;
  }

  /** Creates a project that is a copy of a folder. */
  async copy(source, name) {
    const folder = join(this.folder, "projects", name);
    await cp(source, folder, { recursive: true });
    return folder;
  }

  /**
   * Copies the build to an empty folder far from the packages, so that a bundle cannot load by
   * chance a file that it does not contain.
   */
  async apart(built, name) {
    const folder = join(this.folder, "apart", name);
    await mkdir(folder, { recursive: true });
    await cp(built, folder, { recursive: true });
    await rm(join(folder, "node_modules"), { recursive: true, force: true });
    return folder;
  }

  /** The environment of every program that is started. */
  get env() {
    // Not above the projects: Next.js looks for no lock file in a home.
    const [home, path] = [`${this.folder}-home`, process.env.PATH];
    const quiet = { CI: "1", NO_COLOR: "1", NEXT_TELEMETRY_DISABLED: "1", VITE_CJS_IGNORE_WARNING: "1" };
    return { HOME: home, PATH: path, ...quiet, LOCKS_URL: this.url, LOCKS_TOKEN: this.token, LOCKS_NAME: this.lockName() };
  }

  /** Returns a name that no other environment uses. */
  lockName() {
    return `bundlers:${crypto.randomUUID()}`;
  }

  /** Runs a program to its end and returns its output. A failure shows all of the output. */
  async run(program, args, cwd, env = {}) {
    try {
      const options = { cwd, env: { ...this.env, ...env }, timeout: PATIENCE_MS, maxBuffer: 64 << 20 };
      const { stdout } = await start(program, args, options);
      return stdout;
    } catch (error) {
      throw new Error(`${program} ${args.join(" ")}:\n${error.stdout}\n${error.stderr}`);
    }
  }

  /** Runs a program of the tools. */
  tool(name, args, cwd, env) {
    return this.run(process.execPath, [join(this.folder, "node_modules", name), ...args], cwd, env);
  }

  /** Runs a program and checks the last line of its output, which is the result. */
  async result(program, args, cwd) {
    const output = await this.run(program, args, cwd);
    assert.match(output.trimEnd().split("\n").at(-1), EXPECTED);
  }

  /**
   * Starts a program that runs until `close`. `said` has its output so far, and `ended` rejects
   * when it ends by itself.
   */
  launch(program, args, cwd, env = {}) {
    const child = spawn(program, args, { cwd, env: { ...this.env, ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const said = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => said.push(text));
    const close = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {}
    };
    const ended = once(child, "exit").then(() => {
      throw new Error(`it ended: ${said.join("")}`);
    });
    ended.catch(() => {});
    return { child, close, said, ended };
  }

  /** Launches a server, and waits for it to respond at this address. */
  async serve(program, args, cwd, address, env = {}) {
    const server = this.launch(program, args, cwd, env);
    let isOver = false;
    const answers = async () => {
      while (!isOver) {
        const is = await fetch(address, { redirect: "manual" }).then(() => true, () => false);
        if (is) return;
        await new Promise((next) => setTimeout(next, 100));
      }
    };
    try {
      await Promise.race([answers(), server.ended]);
    } catch (error) {
      server.close();
      throw error;
    } finally {
      isOver = true;
    }
    return server;
  }

  /** Serves a folder and opens a page of it, whose title is the result. */
  async page(folder, { path = "/index.html", strict = false } = {}) {
    const policy = strict ? { "content-security-policy": `${STRICT} ${this.front.url}` } : {};
    const server = createServer(async (request, response) => {
      const { pathname } = new URL(request.url, "http://localhost");
      const body = await readFile(join(folder, pathname)).catch(() => null);
      const type = TYPES[extname(pathname)] ?? "application/octet-stream";
      response.writeHead(body === null ? 404 : 200, { "content-type": type, ...policy }).end(body ?? "");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      await this.open(`http://127.0.0.1:${server.address().port}${path}`);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  /** Opens a page of any server. */
  async open(address) {
    this.browser ??= await launch();
    const page = await this.browser.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error.stack)));
    page.on("console", (message) => {
      // The first call of a script may get a response with status 400: docs/errors.md.
      if (message.type() === "error" && !/status of 400/.test(message.text())) complaints.push(message.text());
    });
    try {
      const url = new URL(address);
      for (const [name, value] of Object.entries({ url: this.front.url, token: this.token, name: this.lockName() })) {
        url.searchParams.set(name, value);
      }
      await page.goto(url.href);
      await page.waitForFunction(() => /^(token|error) /.test(document.title), undefined, { timeout: PATIENCE_MS });
      assert.match(await page.title(), EXPECTED);
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
    }
  }
}

/** A program for a server: the last line of its output is its result. */
export const PROGRAM = `import * as edgelatch from "edgelatch";
import { use } from "./use.mjs";
const { LOCKS_URL: url, LOCKS_TOKEN: token, LOCKS_NAME: name } = process.env;
use(edgelatch, { url, token, name }).then(console.log);
`;
export const PROGRAM_CJS = `const edgelatch = require("edgelatch");
const { LOCKS_URL: url, LOCKS_TOKEN: token, LOCKS_NAME: name } = process.env;
import("./use.mjs").then(({ use }) => use(edgelatch, { url, token, name })).then(console.log);
`;

/** A program for a page: the page's title is its result. */
export const PAGE = `import * as edgelatch from "edgelatch";
import { use } from "./use.mjs";
const options = Object.fromEntries(new URLSearchParams(location.search));
use(edgelatch, options).then((result) => (document.title = result), (error) => (document.title = "error " + error.stack));
`;

/** Returns a page with this script. */
export const html = (script, head = "", type = "module") =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${head}<script type="${type}" src="${script}"></script>`;
