/** Test runners, with tests as users write them. */

import { readFile } from "node:fs/promises";

const BODY = `test("a lock is taken and released", async () => {
  const { LOCKS_URL: url, LOCKS_TOKEN: token, LOCKS_NAME: name } = process.env;
  expect(await use(edgelatch, { url, token, name })).toContain(", released");
}, 120_000);
`;
const ESM = 'import * as edgelatch from "edgelatch";\nimport { use } from "./use.mjs";\n';
const VITEST = `import { expect, test } from "vitest";\n${ESM}${BODY}`;
/** Jest itself compiles neither ESM nor imports. */
const JEST_CJS = `const edgelatch = require("edgelatch");\n${BODY.replace("expect(await use(", "const { use } = require(\"./use.cjs\");\n  expect(await use(")}`;
const asCommonJs = (source) => `${source.replaceAll("export ", "")}\nmodule.exports = { use };\n`;

const FAKE = `import { expect, test, vi } from "vitest";
${ESM}
test("an uncontended lock needs no timer to pass", async () => {
  const { LOCKS_URL: url, LOCKS_TOKEN: token, LOCKS_NAME: name } = process.env;
  vi.useFakeTimers();
  try {
    const lease = await edgelatch.connect({ url, token }).lock(name).acquire();
    expect(await lease.release()).toBe("released");
  } finally {
    vi.useRealTimers();
  }
}, 120_000);
`;

const FAKE_CONTENDED = `import { expect, test, vi } from "vitest";
${ESM}
test("all timers can run while a call waits for a lock that another client holds", async () => {
  const { LOCKS_URL: url, LOCKS_TOKEN: token, LOCKS_NAME: name } = process.env;
  const lease = await edgelatch.connect({ url, token }).lock(name + ":contended").acquire();
  // Not setImmediate: Node's own fetch needs it.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"] });
  try {
    let answered;
    const first = new Promise((resolve) => (answered = resolve));
    const carry = async (...call) => {
      const response = await fetch(...call);
      answered();
      return response;
    };
    const leaving = new AbortController();
    const lock = edgelatch.connect({ url, token, fetch: carry, wakeups: "off" }).lock(name + ":contended");
    const waits = lock.acquire({ waitMs: "until-aborted", signal: leaving.signal }).catch((reason) => reason);
    await first;
    vi.runAllTimers();
    leaving.abort("enough");
    expect(await waits).toBe("enough");
    await lease.release();
  } finally {
    vi.useRealTimers();
  }
}, 120_000);
`;

const vitest = (name, text, config = {}, note, more = {}) => ({
  name,
  note,
  extent: "full",
  async run(workshop) {
    const files = { "lock.test.js": text, ...more, "vitest.config.js": `export default ${JSON.stringify({ test: config })};\n` };
    const folder = await workshop.project(name.replaceAll(/\W+/g, "-"), files);
    await workshop.tool("vitest/vitest.mjs", ["run"], folder);
  },
});

const jest = (name, files, config = {}, flags = [], note) => ({
  name,
  note,
  extent: "full",
  async run(workshop) {
    const source = await readFile(new URL("../use.mjs", import.meta.url), "utf8");
    const manifest = JSON.stringify({ name: "user", private: true, ...(name.includes("ESM") ? { type: "module" } : {}) });
    const all = { "package.json": manifest, "jest.config.json": JSON.stringify({ transform: {}, ...config }), "use.cjs": asCommonJs(source), ...files };
    const folder = await workshop.project(name.replaceAll(/\W+/g, "-"), all);
    await workshop.run(process.execPath, [...flags, `${workshop.folder}/node_modules/jest/bin/jest.js`], folder);
  },
});

export const environments = [
  vitest("Vitest, node", VITEST),
  vitest("Vitest, jsdom", VITEST, { environment: "jsdom" }),
  vitest(
    "Vitest, happy-dom",
    VITEST,
    { environment: "happy-dom", environmentOptions: { happyDOM: { settings: { fetch: { disableSameOriginPolicy: true } } } } },
    "`environmentOptions: { happyDOM: { settings: { fetch: { disableSameOriginPolicy: true } } } }`, or allow its origin at the gateway",
  ),
  vitest("Vitest, fake timers", FAKE, {}, undefined, { "contended.test.js": FAKE_CONTENDED }),
  jest("Jest, CommonJS", { "lock.test.js": JEST_CJS }),
  jest("Jest, ESM", { "lock.test.js": `${ESM}${BODY}` }, {}, ["--experimental-vm-modules"]),
  jest(
    "Jest, jsdom",
    { "lock.test.js": JEST_CJS },
    { testEnvironment: "jest-fixed-jsdom" },
    [],
    '`testEnvironment: "jest-fixed-jsdom"`: the environment `jsdom` of Jest has no `fetch`',
  ),
];
