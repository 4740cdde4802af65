/**
 * The record of a run in Redis, beside the locks: which contenders are inside, which stand in line,
 * and the count of the latch.
 *
 * It knows nothing of edgelatch and trusts no Worker: Redis decides whether a contender entered
 * wrongly, in the same step that records the entry.
 */

import { WAIT_MS } from "../kinds.js";
import { command, KEY_LIFE_SECONDS } from "./redis.js";
import { pause } from "./event-stream.js";

/**
 * KEYS: the contenders that are inside (by id: `<end in ms> <mode> <places>`), the record of the
 * run, the line. ARGV: the action, and its arguments. Replies Redis' time in ms, and the result.
 */
const SCRIPT = `
local inside, record, line = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function count(what) return redis.call('HINCRBY', record, what, 1) end
local function counted(what) return tonumber(redis.call('HGET', record, what) or '0') end
local function overlaps(mine, theirs)
  for place in mine:gmatch('%S+') do
    if theirs:find(' ' .. place .. ' ', 1, true) then return true end
  end
  return false
end
local actions = {}
function actions.read(what) return counted(what) end
function actions.enter(id, ends, mode, limit, ordered, places)
  local all, beside, wrong = 1, 1, ordered == '1' and redis.call('LPOP', line) ~= id
  local others = redis.call('HGETALL', inside)
  for i = 1, #others, 2 do
    local theirs, how, where = others[i + 1]:match('^(%d+) (%a+)( .+)$')
    if others[i] ~= id and tonumber(theirs) > now then
      all = all + 1
      if overlaps(places, where) then
        beside = beside + 1
        wrong = wrong or mode == 'alone' or how == 'alone'
      end
    end
  end
  wrong = wrong or beside > tonumber(limit)
  redis.call('HSET', inside, id, ends .. ' ' .. mode .. places)
  redis.call('HSET', record, 'most', math.max(all, counted('most')))
  if wrong then count('wrong') end
  return count(mode)
end
function actions.stay(id, ends, mode, places)
  return redis.call('HSET', inside, id, ends .. ' ' .. mode .. places)
end
function actions.leave(id) return redis.call('HDEL', inside, id) end
function actions.join(id)
  redis.call('RPUSH', line, id)
  return count('joined')
end
function actions.quit(id)
  count('left')
  return redis.call('LREM', line, 0, id)
end
function actions.count() return count('counted') end
function actions.pass(id, wanted)
  if counted('counted') < tonumber(wanted) then count('wrong') end
  return count('passed')
end
local result = actions[ARGV[1]](unpack(ARGV, 2))
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ${KEY_LIFE_SECONDS}) end
return {now, result}
`;

/** The interval in milliseconds at which a contender checks whether the expected ones have come. */
const POLL_MS = 100;

/** An expected contender did not come. */
export class MissingContenderError extends Error {}

/** The checker of one contender of one run. */
export class Checker {
  #env;
  #keys;
  #id;
  /** The lower bound of the milliseconds by which Redis' clock is ahead of this one. */
  #ahead = 0;

  constructor(env, run, id) {
    this.#env = env;
    this.#keys = ["inside", "record", "line"].map((key) => `demo:{${run}}:${key}`);
    this.#id = id;
  }

  /**
   * Records that the contender is inside, for as long as its lease can be trusted. Call it once the
   * lock is held.
   */
  enter(lease, { mode, limit = 1_000, isOrdered = false, places = [] }) {
    return this.#call("enter", this.#id, this.#end(lease), mode, limit, isOrdered ? 1 : 0, joinPlaces(places));
  }

  /** Records that the lease was renewed. */
  stay(lease, { mode, places = [] }) {
    return this.#call("stay", this.#id, this.#end(lease), mode, joinPlaces(places));
  }

  /** Records that the contender is outside again. Call it before the release. */
  leave() {
    return this.#call("leave", this.#id);
  }

  /** Records that the contender stands in line. */
  join() {
    return this.#call("join", this.#id);
  }

  /** Records that the contender leaves the line. Call it before it does. */
  quit() {
    return this.#call("quit", this.#id);
  }

  /** Records that the contender is about to count down. */
  count() {
    return this.#call("count");
  }

  /** Records that the contender passed a gate that requires `counts` counts. */
  pass(counts) {
    return this.#call("pass", this.#id, counts);
  }

  /**
   * Waits until `number` contenders have joined, or have entered `alone` or `shared`. It also reads
   * Redis' clock, so it comes before a hold.
   */
  async waitFor(what, number, signal) {
    for (let polls = 0; (await this.#call("read", what)) < number; polls += 1) {
      if (polls * POLL_MS > WAIT_MS) throw new MissingContenderError("Not all contenders of this round have started.");
      await pause(POLL_MS, [signal]);
      signal.throwIfAborted();
    }
  }

  /**
   * Returns a lower bound of the lease's end by Redis' clock: a contender that waited for the end
   * must not be reported.
   */
  #end(lease) {
    return Math.floor(Date.now() + lease.remaining() + this.#ahead);
  }

  async #call(action, ...args) {
    const [now, result] = await command(this.#env, ["EVAL", SCRIPT, this.#keys.length, ...this.#keys, action, ...args]);
    // Redis reads its clock before this one is read, so the difference is a lower bound.
    this.#ahead = now - Date.now();
    return result;
  }
}

/** Returns the record of a run; every count is present. */
export async function recordOf(env, run) {
  const flat = await command(env, ["HGETALL", `demo:{${run}}:record`]);
  const record = { alone: 0, shared: 0, most: 0, wrong: 0, joined: 0, left: 0, counted: 0, passed: 0 };
  for (let index = 0; index < flat.length; index += 2) record[flat[index]] = Number(flat[index + 1]);
  return record;
}

/**
 * Returns the places as one text with a space on both sides of each. A contender without places is
 * at the place that all share.
 */
function joinPlaces(places) {
  return ` ${places.length > 0 ? places.join(" ") : "here"} `;
}
