/**
 * The assertions of WPT's `query-empty.https.any.js`, `query.https.any.js` and
 * `query-ordering.https.html`. Other clients stand for the workers and frames of these files.
 */

import { ok, same } from "../../check.mjs";
import { held, unreached } from "../world.mjs";

const SHARED = { mode: "shared" };
const modes = (list, of) => list.filter(({ name }) => name === of).map(({ mode }) => mode);
const clients = (list, of) => list.filter(({ name }) => name === of).map(({ clientId }) => clientId);

/** Holds a lock, queues requests of these modes behind it, and returns the state then. */
async function queryBehind({ locks, name }, queued) {
  const res = name();
  let waiting;
  const acquired = [];
  const state = await locks.request(res, async () => {
    waiting = queued.map((mode) => locks.request(res, { mode }, () => void acquired.push(mode)));
    return locks.request(res, { ifAvailable: true }, async (lock) => {
      same([lock, acquired], [null, []]);
      return locks.query();
    });
  });
  await Promise.all(waiting);
  return { res, ...state };
}

export const queryEmpty = {
  async "query() returns dictionary with empty arrays when no locks are held"({ locks }) {
    const state = await locks.query();
    for (const list of ["pending", "held"]) {
      ok(Object.hasOwn(state, list) && Array.isArray(state[list]), `an array ${list}`);
      same(state[list], []);
    }
  },
};

export const query = {
  async "query() returns dictionaries with expected properties"(world) {
    const state = await queryBehind(world, ["exclusive"]);
    for (const list of ["pending", "held"]) {
      for (const property of ["name", "mode", "clientId"]) ok(Object.hasOwn(state[list][0], property), `${list}: ${property}`);
    }
  },

  async "query() reports individual held locks"({ locks, name }) {
    const res = name();
    for (const mode of ["exclusive", "shared"]) same(modes((await locks.request(res, { mode }, () => locks.query())).held, res), [mode]);
  },

  async "query() reports multiple held locks"({ locks, name }) {
    const [one, two] = [name(), name()];
    const { held } = await locks.request(one, () => locks.request(two, SHARED, () => locks.query()));
    same([modes(held, one), modes(held, two)], [["exclusive"], ["shared"]]);
  },

  async "query() reports pending and held locks"(world) {
    const { res, pending, held } = await queryBehind(world, ["exclusive"]);
    same([modes(pending, res), modes(held, res)], [["exclusive"], ["exclusive"]]);
  },

  async "query() reports held shared locks with appropriate count"({ locks, name }) {
    const res = name();
    const { held } = await locks.request(res, SHARED, () => locks.request(res, SHARED, () => locks.query()));
    same(modes(held, res), ["shared", "shared"]);
  },

  async "query() reports pending shared locks with appropriate count"(world) {
    const { res, pending, held } = await queryBehind(world, ["shared", "shared"]);
    same([modes(pending, res), modes(held, res)], [["shared", "shared"], ["exclusive"]]);
  },

  async "query() reports the same clientId for held locks from the same context"({ locks, name }) {
    const [one, two] = [name(), name()];
    const { held } = await locks.request(one, () => locks.request(two, () => locks.query()));
    same([clients(held, one).length, clients(held, two).length], [1, 1]);
    same(clients(held, one), clients(held, two));
  },

  async "query() reports different ids for held locks from different contexts"(world) {
    const res = world.name();
    const elsewhere = held(world.other(), res, SHARED);
    await elsewhere.granted;
    const state = await world.locks.request(res, SHARED, () => world.locks.query());
    const ids = clients(state.held, res);
    same([ids.length, new Set(ids).size], [2, 2]);
    elsewhere.release();
    await elsewhere.released;
  },

  async "query() can observe a deadlock"(world) {
    const [one, two] = [world.name(), world.name()];
    const { locks } = world;
    const elsewhere = world.other();
    const [first, second] = [held(elsewhere, one), held(locks, two)];
    await Promise.all([first.granted, second.granted]);
    const [gaveUp, abort] = [new AbortController(), new AbortController()];
    const waiting = elsewhere.request(two, { signal: gaveUp.signal }, unreached("the second lock"));
    same(await elsewhere.request(two, { ifAvailable: true }, (lock) => lock), null);
    const waitingHere = locks.request(one, { signal: abort.signal }, unreached("the first lock"));
    const state = await locks.query();
    const [heldOne, heldTwo] = [clients(state.held, one), clients(state.held, two)];
    same([heldOne.length, heldTwo.length], [1, 1]);
    same([clients(state.pending, two), clients(state.pending, one)], [heldOne, heldTwo]);
    gaveUp.abort();
    abort.abort();
    await Promise.allSettled([waiting, waitingHere]);
    first.release();
    second.release();
    await Promise.all([first.released, second.released]);
  },
};

export const queryOrdering = {
  async "Requests appear in state in order made."(world) {
    const res = world.name();
    const ids = ["one", "two", "three"];
    const others = ids.map((clientId) => world.other({ clientId }));
    const order = async () => clients((await world.locks.query()).pending, res);
    const first = held(world.locks, res);
    await first.granted;
    const group = [];
    for (const other of others) {
      group.push(held(other, res));
      await other.query();
    }
    same(await order(), ids);
    const again = [];
    for (const i of [2, 0, 1]) {
      again.push(held(others[i], res));
      await others[i].query();
    }
    first.release();
    for (const one of group.slice(0, 2)) {
      await one.granted;
      one.release();
      await one.released;
    }
    same(await order(), ["three", "one", "two"]);
    for (const one of [group[2], ...again]) {
      await one.granted;
      one.release();
      await one.released;
    }
  },
};
