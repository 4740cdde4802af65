// Measures the time that Redis spends on pairs of acquire and release.
import { randomUUID } from "node:crypto";

import { pair } from "./subjects.mjs";

/**
 * Returns the microseconds per pair of each round, by Redis' statistics of commands. `commands` are
 * those that the library sends; the time of a script includes the commands that it runs.
 */
export async function server(subject, { rounds, pairs, commands }, env) {
  // Created before the subject, which counts all requests by `fetch`.
  const spent = watch(env, commands);
  const { client } = await subject();
  const lock = client().lock(`bench:${randomUUID()}`);
  const round = async () => {
    const before = await spent();
    for (let i = 0; i < pairs; i += 1) await pair(lock);
    return ((await spent()) - before) / pairs;
  };
  // Loads the scripts.
  await round();
  const figures = [];
  for (let i = 0; i < rounds; i += 1) figures.push(await round());
  return { us: figures };
}

/** The microseconds that Redis has spent on these commands. */
function watch({ url, token }, commands) {
  const { fetch } = globalThis;
  const init = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: '["INFO","commandstats"]' };
  return async () => {
    const { result } = await (await fetch(url, init)).json();
    const time = (command) => Number(new RegExp(`cmdstat_${command}:calls=\\d+,usec=(\\d+)`).exec(result)?.[1] ?? 0);
    return commands.reduce((sum, command) => sum + time(command), 0);
  };
}
