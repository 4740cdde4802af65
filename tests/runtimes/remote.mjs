/**
 * Declares the cases that another program runs as tests of this one: each test ends when the result
 * of its case arrives.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

/** The case that the command names: the last part of its path. */
const ONLY = process.env.EDGELATCH_ONLY?.split(" > ").at(-1);

/**
 * Declares a test for each of `cases` in the block that is being described, so that its time is
 * that of its case.
 *
 * `run(report, only)` starts the other program, calls `report` with each of its events, and
 * resolves when the program has ended. An event is `{ begun }` or the result of a case, `{ name,
 * error }`. `only` is the one case to run; without it all are run.
 *
 * Returns a function that waits for the end and returns what `run` has returned.
 */
export function remoteTests(cases, run) {
  const results = new Map(cases.map(({ name }) => [name, Promise.withResolvers()]));
  const begun = Promise.withResolvers();
  const unknown = [];
  let ended;
  const report = ({ begun: isFirst, name, error }) => {
    if (isFirst) begun.resolve();
    else if (results.has(name)) results.get(name).resolve(error);
    else unknown.push(name);
  };
  // The time to start the program does not count for its first case.
  before(() => {
    ended = run(report, results.has(ONLY) ? ONLY : undefined);
    const settle = (error) => results.forEach(({ resolve }) => resolve(error));
    ended.then(() => settle("it was not run"), (error) => settle(`it was not run: ${error?.stack ?? error}`));
    return Promise.race([begun.promise, ended]);
  });
  after(() => ended.catch(() => {}));
  for (const [isConcurrent, members] of blocks(cases)) {
    const declare = () => members.forEach(({ name }) => test(name, async () => passes(await results.get(name).promise)));
    if (isConcurrent) describe("concurrent cases", { concurrency: members.length }, declare);
    else declare();
  }
  return async () => {
    const value = await ended;
    assert.deepEqual(unknown, []);
    return value;
  };
}

function passes(error) {
  assert.ok(!error, error);
}

/** Returns the cases in their order, divided into concurrent and sequential blocks. */
function blocks(cases) {
  const blocks = [];
  for (const one of cases) {
    const isConcurrent = Boolean(one.isConcurrent);
    if (blocks.at(-1)?.[0] !== isConcurrent) blocks.push([isConcurrent, []]);
    blocks.at(-1)[1].push(one);
  }
  return blocks;
}
