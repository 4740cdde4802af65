/**
 * The gateway, nginx and Caddy: each a process of its own in a folder of its own, ended by its id.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { required } from "../runtimes/project.mjs";

/** The address in the examples of gateway/README.md. */
const GATEWAY = "127.0.0.1:8079";

export const TOKEN = "the-token-of-the-tests-of-proxies";
/** A path that each proxy refuses: a request there that runs was not seen by the proxy. */
export const CLOSED = "/set/canary";

const SCOPE_KEY = "a key of thirty-two bytes or more";

/** Starts a gateway with a Redis of its own. */
export async function startGateway(...options) {
  const program = required("EDGELATCH_GATEWAY");
  const env = { PATH: process.env.PATH, EDGELATCH_TOKENS: TOKEN, EDGELATCH_SCOPE_KEYS: SCOPE_KEY, EDGELATCH_LOG: "warn" };
  const child = spawn(program, ["--dev", "--listen", "127.0.0.1:0", ...options], { env, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = line.match(/^listening on (.+)$/) ?? [];
    if (url) return { url, run: (...words) => run(url, words), close: () => end(child) };
  }
  throw new Error("the gateway did not start");
}

/** Runs a command without a proxy, and returns its result. */
async function run(url, words) {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(words) });
  return (await response.json()).result;
}

/** A scoped token of this client, for locks below `app:`. */
export async function scopedToken(subject) {
  const words = ["token", "--prefix", "app:", "--max-lease", "60s", "--lives", "10m", "--subject", subject];
  const child = spawn(required("EDGELATCH_GATEWAY"), words, { env: { EDGELATCH_SCOPE_KEYS: SCOPE_KEY } });
  const output = [];
  child.stdout.on("data", (text) => output.push(text));
  await once(child, "close");
  return output.join("").trim();
}

/** The example in this language of gateway/README.md, for this gateway. */
export async function example(language, gateway) {
  const page = await readFile(new URL("../../gateway/README.md", import.meta.url), "utf8");
  const [, code] = page.match(new RegExp(`^\`\`\`${language}\\n([^]+?)^\`\`\`$`, "m")) ?? [];
  if (!code?.includes(GATEWAY)) throw new Error(`the page has no example in ${language}`);
  return code.replace(GATEWAY, new URL(gateway.url).host);
}

/** nginx with Debian's settings around this `location`. */
export function startNginx(location) {
  return startProxy("nginx", (folder, port) => ({
    file: "nginx.conf",
    text: `daemon off;
user ${userInfo().username};
pid ${folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  gzip on;
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location ${CLOSED} { return 403; }
    ${location}
  }
}
`,
    command: ["nginx", "-e", "stderr", "-p", folder, "-c", `${folder}/nginx.conf`],
  }));
}

/** Caddy with this site, on plain HTTP. */
export function startCaddy(site) {
  return startProxy("caddy", (folder, port) => ({
    file: "Caddyfile",
    text: `{
	admin off
	default_bind 127.0.0.1
}
${site.replace(/^\S+ {/, `http://:${port} {\n\trespond ${CLOSED}* 403`)}`,
    command: ["caddy", "run", "--adapter", "caddyfile", "--config", `${folder}/Caddyfile`],
  }));
}

/** Starts a proxy on a free port. Retries if another program has taken the port meanwhile. */
async function startProxy(name, describe) {
  const folder = await mkdtemp(join(tmpdir(), `edgelatch-${name}-`));
  for (;;) {
    const port = await freePort();
    const { file, text, command: [program, ...args] } = describe(folder, port);
    await writeFile(join(folder, file), text);
    // Debian installs servers in a folder that is in root's PATH only.
    const env = { PATH: `${process.env.PATH}:/usr/sbin`, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    const child = spawn(program, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    const output = [];
    child.stderr.on("data", (bytes) => output.push(bytes));
    const close = async () => {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    };
    if (await serves(child, port)) return { name, port, url: `http://127.0.0.1:${port}`, close };
    const log = output.join("");
    if (!/in use/.test(log)) throw new Error(`${name} did not start: ${log}`);
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/**
 * Whether the program forwards requests to our gateway; false once it has ended. A different
 * program may have taken the port.
 */
async function serves(child, port) {
  const failed = once(child, "error");
  failed.catch(() => {});
  while (child.exitCode === null && child.signalCode === null) {
    const isOurs = await Promise.race([
      run(`http://127.0.0.1:${port}`, ["PING"]).then((reply) => reply === "PONG", () => false),
      failed.then(([error]) => Promise.reject(error)),
    ]);
    if (isOurs) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
