// Counts the requests and bytes of each call, on a Redis that does not know the scripts, and later.
import { randomUUID } from "node:crypto";

import { startCountingProxy } from "./counting_proxy.mjs";

/** Fails if a call does not succeed. */
export async function traffic(subject, _options, env) {
  const [near, far] = await Promise.all([startCountingProxy(env.url), startCountingProxy(env.redis)]);
  const { wire, client } = await subject({ url: near.url, redis: far.url });
  const made = client();
  const total = () => ({
    requests: wire.requests(),
    up: near.counts.up + far.counts.up,
    down: near.counts.down + far.counts.down,
  });
  const cost = async (work) => {
    const before = total();
    const result = await work();
    const after = total();
    return [result, Object.fromEntries(Object.keys(after).map((key) => [key, after[key] - before[key]]))];
  };
  const round = async () => {
    const name = `bench:${randomUUID()}`;
    const [lock, other] = [made.lock(name), made.lock(name)];
    const [taken, acquire] = await cost(lock.tryAcquire);
    const [refused, contended] = await cost(other.tryAcquire);
    const [held, renew] = await cost(() => lock.renew(taken));
    const [released, release] = await cost(() => lock.release(held));
    if (!taken || refused || !held || !released) throw new Error("a call did not do what it is for");
    return { acquire, contended, renew, release };
  };
  await wire.opened();
  const first = await round();
  await round();
  const later = await round();
  near.end();
  far.end();
  return { first, later };
}
