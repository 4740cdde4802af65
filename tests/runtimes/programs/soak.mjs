/**
 * The load of a program that runs for months, in Node: cycles, or with SOAK_WHAT concurrent holds,
 * for a minimum of cycles and minutes, with a line of JSON for each part; or each of the sorts of
 * use, with one line for all. Then it has to end by itself.
 */

import { loaded } from "../watch.mjs";
import { connect } from "edgelatch";
import { crowd, cycle } from "./cycles.mjs";
import { eachSort } from "./sorts.mjs";

loaded();
const { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, SOAK_NAME: name, SOAK_WHAT: what } = process.env;
const number = (variable) => Number(process.env[variable]);
const PART = 10_000;

// These tests assert no response time.
const locks = connect({ url, token, requestTimeoutMs: 60_000 });
const print = (value) => console.log(JSON.stringify(value));
if (what === "sorts") {
  print(await eachSort({ connect, url, token, name, rounds: number("SOAK_ROUNDS"), together: number("SOAK_TOGETHER") }));
} else {
  const end = Date.now() + number("SOAK_MINUTES") * 60_000;
  for (let done = 0; done < number("SOAK_CYCLES") || Date.now() < end; done += PART) {
    print(await (what === "crowd" ? crowd(locks, name, PART, number("SOAK_TOGETHER")) : cycle(locks, name, PART)));
  }
}
