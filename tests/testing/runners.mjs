/** The test files that run the cases in each test runner: their text, by the file's name. */

const IMPORTS = `import { connect } from "edgelatch";
import { createTestGateway } from "edgelatch/testing";
import { cases } from "./cases.mjs";
`;

/**
 * Node cannot fake `performance`, and `setImmediate` stays real, to let promises settle. A reset
 * forgets the pending timers, so they run before it.
 */
export const NODE = `import { mock, test } from "node:test";
${IMPORTS}
const advance = async (ms) => {
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  for (let left = ms; left > 0; left -= 100) {
    mock.timers.tick(Math.min(left, 100));
    await settle();
  }
};
for (const [name, run] of Object.entries(cases)) {
  test(name, async () => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: Date.now() });
    try {
      await run({ connect, createTestGateway, advance });
    } finally {
      mock.timers.runAll();
      mock.timers.reset();
    }
  });
}
`;

export const VITEST = `import { test, vi } from "vitest";
${IMPORTS}
const advance = (ms) => vi.advanceTimersByTimeAsync(ms);
for (const [name, run] of Object.entries(cases)) {
  test(name, async () => {
    vi.useFakeTimers();
    try {
      await run({ connect, createTestGateway, advance });
    } finally {
      vi.useRealTimers();
    }
  }, 600_000);
}
`;

const JEST_BODY = `
const advance = (ms) => jest.advanceTimersByTimeAsync(ms);
for (const [name, run] of Object.entries(cases)) {
  test(name, async () => {
    jest.useFakeTimers();
    try {
      await run({ connect, createTestGateway, advance });
    } finally {
      jest.useRealTimers();
    }
  }, 600_000);
}
`;

export const JEST = `const { connect } = require("edgelatch");
const { createTestGateway } = require("edgelatch/testing");
const { cases } = require("./cases.cjs");
${JEST_BODY}`;

export const JEST_ESM = `import { jest } from "@jest/globals";
${IMPORTS}${JEST_BODY}`;

/** Jest itself compiles no ESM. */
export const asCommonJs = (source) => `${source.replaceAll("export const ", "const ")}\nmodule.exports = { cases };\n`;
