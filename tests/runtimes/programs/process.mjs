/**
 * Runs the suite in Node, Deno and Bun. Prints a line of JSON for each event, and then has to end
 * by itself.
 */

import { loaded } from "../watch.mjs";
import * as edgelatch from "edgelatch";
import { run } from "../suite.mjs";

loaded();
const [url, token] = [process.env.EDGELATCH_TEST_URL, process.env.EDGELATCH_TEST_TOKEN];
const [dialect, faulty] = [process.env.EDGELATCH_TEST_DIALECT, process.env.EDGELATCH_TEST_FAULTY];
const report = (event) => console.log(JSON.stringify(event));
await run({ edgelatch, url, token, loads: [], dialect, faulty, only: process.env.EDGELATCH_ONLY, report });
