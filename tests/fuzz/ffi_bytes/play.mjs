/**
 * One case: calls any function with any arguments; each call ends in a result or in an edgelatch
 * error.
 */

import { passes, settled } from "./clock.mjs";
import { Share, call } from "../../../pkg/driver.js";
import { EdgelatchError, InvalidOptionError, connect } from "../../../pkg/index.js";
import { errorOf } from "../../../pkg/errors.js";
import * as methods from "../../../pkg/methods.js";
import { Gateway, good } from "./gateway.mjs";

const TOKEN = "s3cret-t0ken";
const URL_ = "https://gateway.example";
/**
 * The number of timers that may fire before a call is aborted, and again before it must have ended.
 */
const STEPS = 150;
/**
 * Combinations of options that a method accepts: an option that a method does not have is rejected
 * before all others are read.
 */
const OPTIONS = [
  ["leaseMs", "waitMs", "maxRequests", "replicas"],
  ["leaseMs", "replicas"],
  ["preferWriters", "peerWatchdogMs"],
  ["lifeMs", "skewMs", "redissonWaitTimeoutMs", "shortMs", "longMs"],
  ["rejoinDelayMs"], ["clockSkewMs"], ["backoff"], ["peerSkewMs"], ["memoryMs"], ["lifeMs", "name"], ["once"], ["leaseMs"],
  ["requestTimeoutMs", "keyLocking", "publish", "wakeups", "dialect", "fetch", "prefix", "redactNames"],
];
export const ok = (holds, what) => {
  if (!holds) throw new Error(`it does not hold: ${what}`);
};

/** Runs a case; returns every method that was called, with its outcome. */
export async function play(choices) {
  const outcomes = new Set();
  const gateway = new Gateway(choices);
  const off = new AbortController();
  const context = { outcomes, gateway, off, choices };
  // The first client starts the module.
  connect({ url: URL_, token: TOKEN, fetch: good });
  await (choices.byte() % 2 ? behind(context) : before(context));
  // After any case the module still works for other clients.
  const locks = connect({ url: URL_, token: TOKEN, fetch: good });
  const lease = await ended(locks.lock("job").acquire(), context);
  ok(lease.token === 1_700_000_000_000_000, "a lock is had after this");
  ok((await ended(lease.release(), context)) === "released", "and is given back");
  ok(Object.keys(Object.prototype).length === 0, "prototypes stay as they are");
  return outcomes;
}

/**
 * Calls the functions of the WebAssembly module, by its driver, also with arguments that options.js
 * would reject.
 */
async function behind(context) {
  const { choices, gateway } = context;
  const numbers = (most) => Array.from({ length: choices.byte() % (most + 1) }, () => choices.number());
  const handles = [attempt(context, "open", () => methods.connect(URL_, TOKEN, new Float64Array(7).fill(NaN), gateway.fetch))];
  const shares = [];
  attempt(context, "open any", () => methods.connect(choices.text(), choices.text(), numbers(7), gateway.fetch));
  while (choices.left > 0) {
    const [of, other] = [choices.one(handles), choices.one(handles)];
    const hold = shares.length > 0 && choices.byte() % 2 ? choices.one(shares).hold : undefined;
    const what = choices.byte() % 30;
    const kind = choices.byte() % 5;
    if (kind === 0) read(context, of, hold);
    if (kind === 1) {
      const made = attempt(context, `create ${what}`, () => methods.create(of, what, other, choices.text(), numbers(6), choices.bytes(60)));
      if (made) handles.push(made);
    }
    if (kind > 1) {
      const texts = Array.from({ length: choices.byte() % 4 }, () => choices.text());
      const args = { numbers: numbers(6), texts, signal: context.off.signal, hold };
      const isWrite = kind === 2 && hold;
      const asked = isWrite ? methods.write(of, what, choices.byte() % 30, args) : call(of, what, args);
      const answer = await outcome(asked, context, `${isWrite ? "write" : "call"} ${what}`);
      if (answer instanceof Share) {
        ok(gateway.hasGranted, "the gateway has granted no lease");
        shares.push(answer);
      }
    }
  }
}

/** Reads what needs no request. */
function read(context, of, hold) {
  attempt(context, "name", () => methods.nameOf(of));
  if (!hold) return;
  attempt(context, "permit ids", () => hold.permitIds());
  for (const property of ["token", "holdCount", "remaining", "tokenOf"]) {
    attempt(context, property, () => hold.get(property, context.choices.text()));
  }
}

/** Calls the methods of the API with values of any kind. */
async function before(context) {
  const { choices, gateway } = context;
  const things = [connect({ url: URL_, token: TOKEN, fetch: gateway.fetch })];
  while (choices.left > 0) {
    const of = choices.one(things);
    const name = choices.one(members(of));
    const values = Array.from({ length: choices.byte() % 4 }, () => value(context, things));
    const made = attempt(context, name, () => {
      const member = of[name];
      return typeof member === "function" ? member.apply(of, values) : member;
    });
    const answer = made instanceof Promise ? await outcome(made, context, name) : made;
    if (name === "acquire" && answer !== undefined) ok(gateway.hasGranted, "the gateway has granted no lease");
    const parts = answer?.read && answer.write ? [answer.read, answer.write] : [answer];
    things.push(...parts.filter((part) => members(part).some((name) => ["acquire", "release", "set", "countDown"].includes(name))));
  }
}

/** The members of an edgelatch object. */
function members(of) {
  const names = new Set();
  for (let proto = of; typeof of === "object" && proto && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
    if (!Array.isArray(of)) Object.getOwnPropertyNames(proto).forEach((name) => names.add(name));
  }
  return [...names].filter((name) => name !== "constructor");
}

function value({ choices, off }, things) {
  const kind = choices.byte() % 6;
  if (kind === 0) return choices.value();
  if (kind === 1) return choices.text();
  if (kind === 2) return choices.one(things);
  if (kind === 3) return [choices.one(things), choices.one(things)];
  const known = choices.one(OPTIONS);
  const options = known.includes("replicas") ? { signal: off.signal } : {};
  for (let count = choices.byte() % 4; count > 0; count--) {
    options[choices.one(known)] = choices.byte() % 3 ? choices.number() : choices.value();
  }
  return options;
}

/** Makes the call at once. */
function attempt(context, name, call) {
  try {
    const result = call();
    context.outcomes.add(`${name}: ${result === null ? null : typeof result}`);
    return result;
  } catch (error) {
    isOurs(errorOf(error, {}), context, name);
  }
}

/** Awaits the outcome; aborts the call if it takes too long. */
async function outcome(asked, context, name) {
  try {
    const answer = await ended(asked, context);
    context.outcomes.add(`${name}: ${answer === null ? null : typeof answer}`);
    return answer;
  } catch (error) {
    isOurs(errorOf(error, {}), context, name);
  }
}

/** Lets time pass until it has ended. A call that cannot be aborted may last. */
async function ended(asked, { off }) {
  let end;
  asked.then(
    (answer) => (end = { answer }),
    (error) => (end = { error, failed: true }),
  );
  for (let step = 0; step < STEPS * 2; step++) {
    await settled();
    if (end?.failed) throw end.error;
    if (end) return end.answer;
    if (step === STEPS) off.abort(new InvalidOptionError("called off", "signal", "patience"));
    if (!passes() && step > STEPS) return;
  }
}

/** Whether it is an edgelatch error without a secret, or an error that the case itself threw. */
function isOurs(error, { outcomes }, name) {
  const isThrown = error instanceof RangeError && error.message === "thrown on purpose";
  if (isThrown) return outcomes.add(`${name}: thrown`);
  ok(!(error instanceof WebAssembly.RuntimeError), `${name} has trapped: ${error?.stack}`);
  const isTyped = error instanceof EdgelatchError || error instanceof TypeError;
  ok(isTyped, `${name} throws ${Object.prototype.toString.call(error)} ${error?.stack}`);
  ok(!String(error.stack).includes(TOKEN) && !JSON.stringify(error).includes(TOKEN), `${name} tells the token`);
  outcomes.add(`${name}: ${error.code ?? error.name} ${error.option ?? error.reason ?? ""}`);
}
