// Takes one measurement of one subject, in a process of its own, and prints it as a line of JSON.
// `cargo xtask bench` runs it repeatedly. It asserts no time: figures are for people to judge.
//
//   node [--expose-gc] --experimental-import-meta-resolve measure.mjs SUBJECT MEASUREMENT OPTIONS
//
// OPTIONS are JSON.
import { subjects } from "./subjects.mjs";

const [name, kind, options] = process.argv.slice(2);
const env = {
  url: process.env.EDGELATCH_TEST_URL,
  token: process.env.EDGELATCH_TEST_TOKEN,
  redis: process.env.EDGELATCH_TEST_REDIS,
};
// Loads only this measurement, so that the others do not change the time of a start.
const { [kind]: measure } = await import(`./${kind}.mjs`);

const figures = await measure((changed) => subjects[name]({ ...env, ...changed }), JSON.parse(options), env);
// Exits although waits are pending.
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit());
