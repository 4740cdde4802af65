// Counts the requests of waiters while another client holds the lock.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Measures from the moment at which all waiters begin to wait, each in a client of its own, until
 * the time is over. No waiter is granted.
 */
export async function waiting(subject, { waiters, seconds }, env) {
  // Created before the subject, which counts all requests by `fetch`.
  const commands = watch(env);
  const { wire, client } = await subject();
  const name = `bench:${randomUUID()}`;
  await client().lock(name).tryAcquire();
  const before = { requests: wire.requests(), commands: await commands() };
  for (let i = 0; i < waiters; i += 1) client().lock(name).acquire();
  await sleep(seconds * 1_000);
  const requests = wire.requests() - before.requests;
  // Without the command that reads the figure.
  return { requests, commands: (await commands()) - before.commands - 1 };
}

/** The number of commands that Redis has executed, including those of scripts. */
function watch({ url, token }) {
  const { fetch } = globalThis;
  const init = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: '["INFO","stats"]' };
  return async () => {
    const { result } = await (await fetch(url, init)).json();
    return Number(result.match(/total_commands_processed:(\d+)/)[1]);
  };
}
