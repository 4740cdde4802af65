// Takes one measurement of one subject, in a process of its own, and prints it as JSON.
//
//   node --expose-gc --experimental-import-meta-resolve measure.mjs SUBJECT import|traffic|cpu
import { relay } from "./relay.mjs";
import { pair, subjects } from "./subjects.mjs";

const ROUNDS = 9;
const PAIRS = 400;

const [name, kind] = process.argv.slice(2);
const gateway = { url: process.env.EDGELATCH_TEST_URL, token: process.env.EDGELATCH_TEST_TOKEN };
const measurements = { import: readiness, traffic, cpu };

process.stdout.write(`${JSON.stringify(await measurements[kind]())}\n`);

/** From the import to an object whose first call can be made. */
async function readiness() {
  const start = performance.now();
  await subjects[name](gateway);
  return { ms: performance.now() - start };
}

/** Requests and bytes of an acquire and a release: of the first ones on a Redis that has not seen the scripts, and later. */
async function traffic() {
  const counter = await relay(gateway.url);
  let requests = 0;
  const { fetch } = globalThis;
  globalThis.fetch = (...args) => {
    requests += 1;
    return fetch(...args);
  };
  const subject = await subjects[name]({ ...gateway, url: counter.url });
  const cost = async (work) => {
    const before = { requests, ...counter.counts };
    const result = await work();
    const after = { requests, ...counter.counts };
    return [result, Object.fromEntries(Object.keys(after).map((key) => [key, after[key] - before[key]]))];
  };
  const once = async () => {
    const [held, acquire] = await cost(subject.acquire);
    const [, release] = await cost(() => subject.release(held));
    return { acquire, release };
  };
  const first = await once();
  await once();
  const later = await once();
  counter.end();
  globalThis.fetch = fetch;
  return { first, later };
}

/** Processor time per pair, and what the same requests cost when sent by fetch alone. */
async function cpu() {
  const subject = await subjects[name](gateway);
  for (let i = 0; i < PAIRS; i += 1) await pair(subject);
  const requests = await recorded(subject);
  const bare = async () => {
    for (const [input, init] of requests) await (await fetch(input, init)).text();
  };
  for (let i = 0; i < PAIRS; i += 1) await bare();
  const rounds = [];
  for (let i = 0; i < ROUNDS; i += 1) {
    rounds.push({ pair: await cost(() => pair(subject)), bare: await cost(bare) });
  }
  return { rounds };
}

/** The requests of one pair, to be sent again as they were. */
async function recorded(subject) {
  const { fetch } = globalThis;
  const requests = [];
  globalThis.fetch = (input, { signal, ...init } = {}) => {
    requests.push([input, init]);
    return fetch(input, signal ? { ...init, signal } : init);
  };
  await pair(subject);
  globalThis.fetch = fetch;
  return requests;
}

async function cost(work) {
  globalThis.gc();
  const before = process.cpuUsage();
  for (let i = 0; i < PAIRS; i += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / PAIRS;
}
