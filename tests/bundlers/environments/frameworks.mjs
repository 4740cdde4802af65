/**
 * Frameworks and the edge: Next.js with both of its bundlers, SvelteKit on Cloudflare, and
 * wrangler.
 */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";

import { startWorkerOf } from "../../runtimes/worker.mjs";
import { EXPECTED } from "../use.mjs";

/** A route that uses a lock; it reads the environment during a request. */
const ROUTE = `import * as edgelatch from "edgelatch";
import { use } from "USE";
EXTRA
export async function GET() {
  const { LOCKS_URL: url, LOCKS_TOKEN: token } = process.env;
  try {
    return new Response(await use(edgelatch, { url, token, name: "bundlers:" + crypto.randomUUID() }));
  } catch (error) {
    return new Response(String(error.stack), { status: 500 });
  }
}
`;
const route = (extra) => ROUTE.replace("USE", "../../../use.mjs").replace("EXTRA", `export const dynamic = "force-dynamic";\n${extra}`);

/** The route of a README, as it stands there. */
const documented = async (file) => {
  const text = await readFile(new URL(`../../../${file}`, import.meta.url), "utf8");
  return /^```js\n\/\/ app\/api\/report\/route\.js\n(.+?)^```$/ms.exec(text)[1];
};

const NEXT = {
  "package.json": JSON.stringify({ name: "user", private: true }),
  "app/icon.svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>',
  "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;\n",
  // Prerendered by the build, and used in the browser.
  "app/page.js": `"use client";
import { useEffect } from "react";
import * as edgelatch from "edgelatch";
import { use } from "../use.mjs";
export default function Page() {
  useEffect(() => {
    use(edgelatch, Object.fromEntries(new URLSearchParams(location.search))).then(
      (result) => (document.title = result),
      (error) => (document.title = "error " + error.stack),
    );
  }, []);
  return <p>{typeof edgelatch.connect}</p>;
}
`,
  "app/api/node/route.js": route(""),
  "app/api/edge/route.js": route('export const runtime = "edge";'),
  "app/api/readme/route.js": await documented("README.md"),
  "app/api/readme-edge/route.js": `export const runtime = "edge";\n${await documented("pkg/README.md")}`,
};

const next = (bundler) => ({
  name: `Next.js, ${bundler}: Node route, edge route, client component with prerendering`,
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project(`next-${bundler}`, NEXT);
    const program = join(workshop.folder, "node_modules/next/dist/bin/next");
    const printed = await workshop.run(process.execPath, [program, "build", ...(bundler === "webpack" ? ["--webpack"] : [])], folder);
    assert.doesNotMatch(printed, /edgelatch/, "a warning about the package");
    // The edge route imports the module compiled: a platform that refuses to compile bytes accepts
    // nothing else.
    const built = await readdir(join(folder, ".next/server"), { recursive: true });
    assert.ok(built.some((file) => file.endsWith(".wasm")), "a .wasm file for the edge route");
    const port = await freePort();
    const address = `http://127.0.0.1:${port}/`;
    const start = [program, "start", "--port", String(port), "--hostname", "127.0.0.1"];
    const variables = { UPSTASH_REDIS_REST_URL: workshop.url, UPSTASH_REDIS_REST_TOKEN: workshop.token };
    const server = await workshop.serve(process.execPath, start, folder, address, variables);
    try {
      for (const path of ["api/node", "api/edge"]) assert.match(await text(address + path), EXPECTED, path);
      for (const path of ["api/readme", "api/readme-edge"]) {
        assert.ok(Number.isSafeInteger(JSON.parse(await text(address + path, { method: "POST" })).token), path);
      }
      await workshop.open(address);
    } finally {
      server.close();
    }
  },
});

const SVELTE = {
  "package.json": JSON.stringify({ name: "user", private: true, type: "module" }),
  "svelte.config.js": 'import adapter from "@sveltejs/adapter-cloudflare";\nexport default { kit: { adapter: adapter() } };\n',
  "vite.config.js": 'import { sveltekit } from "@sveltejs/kit/vite";\nexport default { plugins: [sveltekit()] };\n',
  "wrangler.jsonc": JSON.stringify({
    name: "user", main: ".svelte-kit/cloudflare/_worker.js", compatibility_date: "2026-04-01", assets: { binding: "ASSETS", directory: ".svelte-kit/cloudflare" },
  }),
  "src/app.html": "<!doctype html><head>%sveltekit.head%</head><body>%sveltekit.body%</body>",
  "src/routes/+server.js": ROUTE.replace("USE", "../../use.mjs").replace("EXTRA", "").replace("GET()", "GET({ platform })").replace("process.env", "platform.env"),
};

const sveltekit = {
  name: "SvelteKit, adapter-cloudflare",
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project("sveltekit", SVELTE);
    await workshop.tool("vite/bin/vite.js", ["build"], folder);
    // It needs the platform's cache, which workerd alone does not have.
    const port = await freePort();
    const address = `http://127.0.0.1:${port}/`;
    const variables = ["--var", `LOCKS_URL:${workshop.url}`, "--var", `LOCKS_TOKEN:${workshop.token}`];
    const program = join(workshop.folder, "node_modules/wrangler/bin/wrangler.js");
    const dev = [program, "dev", "--port", String(port), "--ip", "127.0.0.1", "--local", ...variables];
    const server = await workshop.serve(process.execPath, dev, folder, address, { WRANGLER_SEND_METRICS: "false" });
    try {
      assert.match(await text(address), EXPECTED);
    } finally {
      server.close();
    }
  },
};

const WORKER = `import * as edgelatch from "edgelatch";
import { use } from "./use.mjs";
export default {
  async fetch(request, { LOCKS_URL: url, LOCKS_TOKEN: token }) {
    return new Response(await use(edgelatch, { url, token, name: "bundlers:" + crypto.randomUUID() }));
  },
};
`;

const wrangler = {
  name: "wrangler, workerd",
  extent: "full",
  async run(workshop) {
    const folder = await workshop.project("wrangler", { "worker.mjs": WORKER });
    await viaWorkerd(workshop, folder, "worker.mjs");
  },
};

async function viaWorkerd(workshop, folder, file) {
  const { url, close } = await startWorkerOf(folder, file, { LOCKS_URL: workshop.url, LOCKS_TOKEN: workshop.token });
  try {
    assert.match(await text(url), EXPECTED);
  } finally {
    await close();
  }
}

async function text(address, init) {
  const response = await fetch(address, init);
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return body;
}

/** Returns a port that is free now. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const TYPED = `import { connect, EdgelatchError } from "edgelatch";
export async function once(url: string | undefined, token: string | undefined): Promise<number | undefined> {
  const lease = await connect({ url, token }).lock("job").tryAcquire();
  try {
    return lease?.token;
  } catch (error) {
    if (error instanceof EdgelatchError && error.code === "gateway-refused") console.log(error.reason);
    throw error;
  } finally {
    await lease?.release();
  }
}
`;

const typescript = (name, options) => ({
  name: `TypeScript, ${name}`,
  extent: "full",
  async run(workshop) {
    const compilerOptions = { strict: true, noEmit: true, skipLibCheck: false, types: [], target: "es2022", lib: ["es2022", "dom"], ...options };
    const files = { "job.ts": TYPED, "tsconfig.json": JSON.stringify({ compilerOptions, include: ["job.ts"] }) };
    const commonJs = { "package.json": JSON.stringify({ name: "user", private: true }) };
    const folder = await workshop.project(name.replaceAll(/\W+/g, "-"), { ...files, ...(name.includes("CommonJS") ? commonJs : {}) });
    await workshop.tool("typescript/bin/tsc", ["--project", "tsconfig.json"], folder);
  },
});

export const environments = [
  next("Turbopack"),
  next("webpack"),
  sveltekit,
  wrangler,
  typescript("moduleResolution bundler", { module: "esnext", moduleResolution: "bundler" }),
  typescript("nodenext", { module: "nodenext", moduleResolution: "nodenext" }),
  typescript("nodenext, CommonJS", { module: "nodenext", moduleResolution: "nodenext" }),
  typescript("node16", { module: "node16", moduleResolution: "node16" }),
  typescript("node10", { module: "commonjs", moduleResolution: "node10" }),
];
