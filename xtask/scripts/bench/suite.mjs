/**
 * The suite `bench`: a quick run finds a figure for every cell of every table. No value is checked:
 * figures are for people to judge.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { bench } from "./bench.mjs";
import { QUICK } from "./effort.mjs";
import { gaps } from "./figures.mjs";

const { tables } = await bench(process.env.EDGELATCH_RESULTS, QUICK);
for (const table of tables) test(`${table.title}: every cell has a figure`, () => assert.deepEqual(gaps(table), []));
