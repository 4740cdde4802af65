/** Prints the errors of a program that can reach no gateway: for each address a try, and a wait. */

import { connect } from "edgelatch";

let requests = 0;
const { fetch } = globalThis;
globalThis.fetch = (...values) => {
  requests += 1;
  return fetch(...values);
};

const results = {};
for (const [what, url] of Object.entries(JSON.parse(process.env.TARGETS))) {
  // A request timeout so long that only an error of the connection ends a request.
  const lock = connect({ url, token: "token", requestTimeoutMs: 60_000 }).lock("unreachable");
  results[what] = [await failureOf(() => lock.tryAcquire()), await failureOf(() => lock.acquire({ waitMs: 1 }))];
}
console.log(JSON.stringify(results));

async function failureOf(call) {
  requests = 0;
  const error = await call().then((lease) => ({ name: `acquired ${lease?.name}` }), (reason) => reason);
  const { name, host, message, cause } = error;
  return { name, host, message, cause: cause instanceof Error ? cause.name : null, requests };
}
