/**
 * Runs the suite in Node, Deno and Bun. Prints a line of JSON for each event, and then has to end
 * by itself.
 */

import * as edgelatch from "edgelatch";
import * as webLocks from "edgelatch/web-locks";
import { run } from "./suite.mjs";

const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, EDGELATCH_ONLY: only } = process.env;
await run({ edgelatch, webLocks, url, token, only, report: (event) => console.log(JSON.stringify(event)) });
