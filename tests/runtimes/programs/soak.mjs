/** Cycles in Node, at least so many and for so long. Prints a line of JSON for each part of them, and then has to end by itself. */

import { loaded } from "../watch.mjs";
import { connect } from "edgelatch";
import { crowd, cycle } from "./cycles.mjs";

loaded();
const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, SOAK_NAME: name, SOAK_CYCLES, SOAK_MINUTES, SOAK_TOGETHER } = process.env;
const PART = 10_000;

// How long an answer takes is not the question here.
const locks = connect({ url, token, requestTimeoutMs: 60_000 });
const end = Date.now() + Number(SOAK_MINUTES) * 60_000;
for (let done = 0; done < Number(SOAK_CYCLES) || Date.now() < end; done += PART) {
  const part = SOAK_TOGETHER ? crowd(locks, name, PART, Number(SOAK_TOGETHER)) : cycle(locks, name, PART);
  console.log(JSON.stringify(await part));
}
