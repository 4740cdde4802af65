/** Programs in Rust: a server, and a Worker. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

import { until } from "../runtimes/check.mjs";
import { newClient } from "../runtimes/project.mjs";
import { EXAMPLES, GATEWAY, call, start } from "./kit.mjs";
import { stall } from "./stale_write.mjs";
import { startWorker } from "./workers.mjs";

const ROOT = join(EXAMPLES, "..");

/** The compiler and the downloads of the user who runs the tests. */
const RUST = {
  CARGO_HOME: join(homedir(), ".cargo"),
  RUSTUP_HOME: join(homedir(), ".rustup"),
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(CARGO|RUST)/.test(name))),
};

/** The programs that worker-build would download, from the search path of the tests. */
const PROGRAMS = { WASM_BINDGEN_BIN: "wasm-bindgen", WASM_OPT_BIN: "wasm-opt", ESBUILD_BIN: "esbuild" };

/** Checks that each order is paid once; the numbers of the orders begin with `first`. */
async function paysOnce(address, first) {
  const pathOf = (id) => `${address}/orders/${id}/pay`;
  const pay = (id) => call("POST", pathOf(id), { body: "visa" });
  const isPaid = ({ status, body }) => {
    assert.equal(status, 200, body);
    assert.match(body, /^paid under token \d{16}$/);
  };
  const lockOf = async (id) => (await newClient(GATEWAY)).lock(`order:${id}`);

  const answers = await Promise.all(Array.from({ length: 6 }, () => pay(first)));
  const [paid, ...others] = answers.sort((one, other) => one.status - other.status);
  isPaid(paid);
  // On a slow machine a request may wait too long for those before it.
  for (const { status, body } of others) assert.ok([409, 503].includes(status), `${status}: ${body}`);
  const again = await pay(first);
  assert.deepEqual([again.status, again.body.trim()], [409, "this order was paid before"]);

  const lease = await (await lockOf(first + 1)).acquire();
  assert.equal((await pay(first + 1)).status, 503);
  await lease.release();
  isPaid(await pay(first + 1));

  // The request has the lock, and waits for the rest of its body.
  const lock = await lockOf(first + 2);
  const stalled = stall("POST", pathOf(first + 2), "visa");
  await until(async () => (await lock.inspect()).locked, "the request holds the lock");
  assert.ok(await lock.forceRelease());
  isPaid(await pay(first + 2));
  const { status, text } = await stalled.finish();
  assert.deepEqual([status, text.trim()], [409, "another request handles this order"]);
}

async function axum(t, workshop) {
  // In its place, as a member of the workspace.
  const server = await start(t, workshop, join(EXAMPLES, "rust-axum"), { env: RUST });
  await paysOnce(await server.address(), 100);
}

async function worker(t, workshop) {
  let copy;
  const prepare = async (folder) => {
    copy = folder;
    const manifest = join(folder, "Cargo.toml");
    const text = await readFile(manifest, "utf8");
    assert.ok(text.includes('path = "../.."'));
    await writeFile(manifest, text.replace('path = "../.."', `path = ${JSON.stringify(ROOT)}`));
  };
  const target = join(RUST.CARGO_TARGET_DIR ?? join(ROOT, "target"), "rust-worker");
  const { address } = await startWorker(t, workshop, "rust-worker", { prepare, env: { ...RUST, ...PROGRAMS, CARGO_TARGET_DIR: target } });
  await paysOnce(address, 200);
  const lock = (folder) => readFile(join(folder, "Cargo.lock"), "utf8");
  assert.equal(await lock(copy), await lock(join(EXAMPLES, "rust-worker")), "the lock file is up to date");
}

export const examples = [
  { name: "rust-axum", what: "an order is paid once, and a stale request is rejected", extent: "full", run: axum },
  { name: "rust-worker", what: "an order is paid once, and a stale request is rejected", extent: "full", run: worker },
];
