/** Both sides contend for one object, and Redis counts the concurrent holders. */

import assert from "node:assert/strict";

/** The number of contenders on each side. */
const CONTENDERS = 3;

/** How long they contend: `EDGELATCH_INTEROP_SECONDS`, or 10 s. */
const MS = 1_000 * Number(process.env.EDGELATCH_INTEROP_SECONDS ?? 10);

export const contention = {
  async "both sides contend without two concurrent holders"(world) {
    const counter = `turns:${world.name}`;
    const turns = await contended(world, { take: "lock", give: { method: "unlock", args: [] }, most: 1, counter });
    assert.deepEqual(turns, Array.from(turns, (_, place) => place + 1), "no turn was counted twice");
  },
};

/** Repeats `round` as long as the other contenders run, at least once. */
export async function rounds(round) {
  const end = performance.now() + MS;
  do {
    await round();
  } while (performance.now() < end);
}

/** Runs contenders on both sides; returns the turns of both, sorted, if they are counted. */
export async function contended(world, { take, give, most, counter }) {
  const gauge = `inside:${world.name}`;
  const { own, description } = await world.another();
  let over = false;
  const contender = () => contend(world, { gauge, counter, most }, () => over);
  const ours = Promise.all(Array.from({ length: CONTENDERS }, contender));
  const theirs = own.contend({
    object: description,
    take: { method: take, args: [] },
    give,
    threads: CONTENDERS,
    ms: MS,
    gauge,
    most,
    without: [],
    ...(counter && { counter }),
  });
  // Ours end also when Java's have failed: they would contend for ever.
  const [java, seen] = await Promise.all([theirs.finally(() => (over = true)), ours]);
  const turns = seen.flat();
  assert.ok(turns.length > 0 && java.sections > 0);
  assert.ok(turns.every(({ right }) => right));
  assert.equal(java.violations, 0);
  assert.equal(await world.command("GET", gauge), "0");
  await own.close();
  return [...turns.map(({ turn }) => turn), ...java.turns.map(([, turn]) => turn)].sort((a, b) => a - b);
}

async function contend({ make, client, command }, { gauge, counter, most }, isOver) {
  const ours = make(client());
  const signal = new AbortController().signal;
  const options = { waitMs: "until-aborted", signal };
  const turns = [];
  while (!isOver()) {
    const lease = await ("availablePermits" in ours ? ours.acquire(1, options) : ours.acquire(options));
    const right = (await command("INCR", gauge)) <= most;
    let turn;
    if (counter) {
      turn = Number(await command("GET", counter)) + 1;
      await command("SET", counter, String(turn));
    }
    await command("DECR", gauge);
    turns.push({ right, turn });
    assert.equal(await lease.release(), "released");
  }
  return turns;
}
