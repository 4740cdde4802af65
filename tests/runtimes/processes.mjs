/**
 * Programs that Node, Deno and Bun each run in a separate process, since they end it, fail it, or
 * load the package twice.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { newProject, required, runProgram } from "./project.mjs";
import { selfSigned } from "./self_signed.mjs";

const tools = required("EDGELATCH_TOOLS");
const rights = ["--allow-env", "--allow-net=127.0.0.1,localhost,nowhere.invalid", "--allow-read"];
const RUNTIMES = {
  Node: [process.execPath, []],
  Deno: [join(tools, ".bin/deno"), ["run", ...rights, "--no-lock", "--node-modules-dir=manual"]],
  Bun: [join(tools, ".bin/bun"), ["run"]],
};

/** The ways in which a program ends, and the last line that it prints. */
const ENDINGS = {
  "a lease is held": "held",
  "event iterators are open": "listening",
  "an acquire is waiting": "acquired",
  "the work of run is pending": "worked",
};

/** The end of the message for each address at which no gateway can be reached. */
const REASONS = {
  "a refused port": /, (ECONNREFUSED|tcp connect error: Connection refused.*)\)$/,
  "an unknown host": /, (ENOTFOUND|EAI_\w+|dns error.*)\)$/,
  "https to an http port": /, (ERR_SSL_WRONG_VERSION_NUMBER|EPROTO|.*InvalidContentType.*)\)$/,
  "a self-signed certificate": /, (DEPTH_ZERO_SELF_SIGNED_CERT|invalid peer certificate.*)\)$/,
};

/** Defines the tests; `env` has the gateway's address and token. */
export function processes(env) {
  for (const [name, [program, args]] of Object.entries(RUNTIMES)) {
    describe(name, { concurrency: 2 }, () => inRuntime(name, env, (file, more) => runProgram(program, args, { ...env, ...more }, file)));
    test(`${name} prints a short uncaught error that names the caller`, () => uncaught(program, args, env));
  }
  // As in a program that uses the Rust crate, where only its timers keep the program running.
  test("timers keep a program running, unless the npm package's entry unrefs them", async () => {
    const print = (first) => `import { sleep, unrefTimers } from "${new URL("../../src/web.js", import.meta.url)}";\n${first}\nsleep(200, () => console.log("woken"));`;
    const printed = async (source) => (await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", source])).stdout.trim();
    assert.deepEqual([await printed(print("")), await printed(print("unrefTimers();"))], ["woken", ""]);
  });
}

function inRuntime(runtime, env, run) {
  test("an unreachable gateway is reported at once with host, reason and cause, and nothing is held", async (t) => {
    const targets = await openTargets(t);
    const results = await run("unreachable.mjs", { TARGETS: JSON.stringify(targets) });
    assert.deepEqual(Object.keys(results), Object.keys(targets));
    for (const [what, failures] of Object.entries(results)) {
      for (const { name, host, message, cause, requests } of failures) {
        assert.deepEqual([name, host], ["GatewayUnreachableError", new URL(targets[what]).host], `${what}: ${message}`);
        assert.match(message, /could not be reached; nothing is held/, what);
        assert.match(message, REASONS[what]);
        assert.ok(cause, `${what}: no cause`);
        assert.ok(requests > 0 && requests <= 6, `${what}: ${requests} requests`);
      }
    }
  });

  for (const [ending, printed] of Object.entries(ENDINGS)) {
    test(`a program exits when no call is pending: ${ending}`, async () => {
      assert.equal(await run("ending.mjs", { ENDING: ending }), printed);
    });
  }

  test("import and require in one process recognize each other's errors and reject each other's locks and leases", async () => {
    const [areTwo, ...both] = await run("copies.mjs");
    assert.ok(areTwo, "there are two copies");
    for (const { isOurs, isTheirs, messages, end } of both) {
      assert.deepEqual([isOurs, isTheirs, end], [[true, true, false], true, "released"]);
      for (const message of messages) assert.match(message, /another one .*`import` and `require`/);
    }
  });

  test("values of another realm are accepted", async () => assert.deepEqual(await run("realms.mjs"), [4, {}]));

  test("the console shows kind, name, fencing token and remaining time", async () => {
    const { name, token, texts } = await run("shown.mjs");
    const { host } = new URL(env.EDGELATCH_TEST_URL);
    const expected = [
      ["edgelatch", host], ["fencedLock", host, name], ["semaphore", host, "seats"], ["guard", host, "value"],
      ["lease of fencedLock", host, name, String(token), "remainingMs"],
    ];
    for (const shown of texts) {
      for (const [i, parts] of expected.entries()) {
        assert.ok(shown[i].startsWith(`${parts[0]} {`) && parts.every((part) => shown[i].includes(part)), `${runtime}: ${shown[i]}`);
        assert.ok(!shown[i].includes(env.EDGELATCH_TEST_TOKEN));
      }
    }
  });
}

/** Returns addresses at which no gateway can be reached. */
async function openTargets(t) {
  const listen = async (server) => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    return server.address().port;
  };
  const closed = createServer();
  const refused = await listen(closed);
  closed.close();
  const respond = (_request, response) => response.end();
  const [plain, secure] = [await listen(createServer(respond)), await listen(createSecureServer(selfSigned(), respond))];
  return {
    "a refused port": `http://127.0.0.1:${refused}`,
    "an unknown host": "https://nowhere.invalid",
    "https to an http port": `https://127.0.0.1:${plain}`,
    "a self-signed certificate": `https://localhost:${secure}`,
  };
}

async function uncaught(program, args, env) {
  const stack = await runProgram(program, args, { ...env, CAUGHT: "1" }, "uncaught.mjs");
  assert.match(stack, /GatewayRefusedError: .*invoice:42/);
  assert.match(stack, /chargeInvoice.*uncaught\.mjs/);

  const options = { cwd: await newProject(), env: { PATH: process.env.PATH, NO_COLOR: "1", ...env } };
  const started = promisify(execFile)(program, [...args, "tests/programs/uncaught.mjs"], options);
  const { stderr } = await started.then(() => assert.fail("it exited without an error"), (error) => error);
  assert.match(stderr, /invoice:42/);
  assert.match(stderr, /chargeInvoice/);
  assert.ok(stderr.length < 3_000, `it printed ${stderr.length} characters: ${stderr}`);
  for (const line of stderr.split("\n")) assert.ok(line.length < 400, `a line of the package's source: ${line}`);
}
