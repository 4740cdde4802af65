/**
 * What Redis sees of a run, beside the locks: who is inside, who stands in line, how far it was
 * counted.
 *
 * It knows nothing of edgelatch and believes no Worker: whether somebody entered who should not
 * have is decided in Redis, in the same step that lets him in.
 */

import { WAIT_MS } from "../kinds.js";
import { command, KEY_LIFE_SECONDS } from "./redis.js";
import { pause } from "./story.js";

/**
 * KEYS: who is inside (by id: `<end in ms> <mode> <places>`), the record of the run, who stands in
 * line. ARGV: what is done, and its arguments. Replies Redis' time in ms, and what came of it.
 */
const SEEN = `
local inside, record, line = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function count(what) return redis.call('HINCRBY', record, what, 1) end
local function known(what) return tonumber(redis.call('HGET', record, what) or '0') end
local function meet(mine, theirs)
  for place in mine:gmatch('%S+') do
    if theirs:find(' ' .. place .. ' ', 1, true) then return true end
  end
  return false
end
local acts = {}
function acts.look(what) return known(what) end
function acts.enter(id, ends, mode, limit, ordered, places)
  local all, beside, wrong = 1, 1, ordered == '1' and redis.call('LPOP', line) ~= id
  local others = redis.call('HGETALL', inside)
  for i = 1, #others, 2 do
    local theirs, how, where = others[i + 1]:match('^(%d+) (%a+)( .+)$')
    if others[i] ~= id and tonumber(theirs) > now then
      all = all + 1
      if meet(places, where) then
        beside = beside + 1
        wrong = wrong or mode == 'alone' or how == 'alone'
      end
    end
  end
  wrong = wrong or beside > tonumber(limit)
  redis.call('HSET', inside, id, ends .. ' ' .. mode .. places)
  redis.call('HSET', record, 'most', math.max(all, known('most')))
  if wrong then count('wrong') end
  return count(mode)
end
function acts.stay(id, ends, mode, places)
  return redis.call('HSET', inside, id, ends .. ' ' .. mode .. places)
end
function acts.leave(id) return redis.call('HDEL', inside, id) end
function acts.join(id)
  redis.call('RPUSH', line, id)
  return count('joined')
end
function acts.quit(id)
  count('left')
  return redis.call('LREM', line, 0, id)
end
function acts.count() return count('counted') end
function acts.pass(id, wanted)
  if known('counted') < tonumber(wanted) then count('wrong') end
  return count('passed')
end
local answer = acts[ARGV[1]](unpack(ARGV, 2))
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ${KEY_LIFE_SECONDS}) end
return {now, answer}
`;

/** How often it is looked whether the others have come. */
const LOOK_MS = 100;

/** Somebody who belongs to the round did not come. */
export class NoShowError extends Error {}

/** The witness of one contender of one run. */
export class Witness {
  #env;
  #keys;
  #id;
  /** Redis' clock is ahead of ours by at least this. */
  #ahead = 0;

  constructor(env, run, id) {
    this.#env = env;
    this.#keys = ["inside", "record", "line"].map((key) => `demo:{${run}}:${key}`);
    this.#id = id;
  }

  /**
   * Says that this one is inside, as long as its lease can be trusted: to be said when the lock is
   * held.
   */
  enter(lease, { mode, limit = 1_000, isOrdered = false, places = [] }) {
    return this.#do("enter", this.#id, this.#end(lease), mode, limit, isOrdered ? 1 : 0, spelt(places));
  }

  /** Says that the lease was renewed. */
  stay(lease, { mode, places = [] }) {
    return this.#do("stay", this.#id, this.#end(lease), mode, spelt(places));
  }

  /** Says that this one is outside again: to be said before the release. */
  leave() {
    return this.#do("leave", this.#id);
  }

  /** Says that this one stands in line. */
  join() {
    return this.#do("join", this.#id);
  }

  /** Says that this one stands in line no more: to be said before it goes. */
  quit() {
    return this.#do("quit", this.#id);
  }

  /** Says that this one is about to count down. */
  count() {
    return this.#do("count");
  }

  /** Says that this one went through a gate which wanted so many counts. */
  pass(counts) {
    return this.#do("pass", this.#id, counts);
  }

  /**
   * Waits until so many have joined, or have entered `alone` or `shared`. It learns Redis' time, so
   * it comes before a hold.
   */
  async sees(what, number, signal) {
    for (let looks = 0; (await this.#do("look", what)) < number; looks += 1) {
      if (looks * LOOK_MS > WAIT_MS) throw new NoShowError("Not all who belong to this round have come.");
      await pause(LOOK_MS, [signal]);
      signal.throwIfAborted();
    }
  }

  /**
   * Never later than the end of the lease by Redis' own clock, so that nobody is accused who waited
   * for it.
   */
  #end(lease) {
    return Math.floor(Date.now() + lease.remaining() + this.#ahead);
  }

  async #do(act, ...args) {
    const [now, answer] = await command(this.#env, ["EVAL", SEEN, this.#keys.length, ...this.#keys, act, ...args]);
    // Read in Redis before it is read here, so this is a lower bound.
    this.#ahead = now - Date.now();
    return answer;
  }
}

/** What Redis has recorded of a run; every number is there. */
export async function recordOf(env, run) {
  const flat = await command(env, ["HGETALL", `demo:{${run}}:record`]);
  const record = { alone: 0, shared: 0, most: 0, wrong: 0, joined: 0, left: 0, counted: 0, passed: 0 };
  for (let index = 0; index < flat.length; index += 2) record[flat[index]] = Number(flat[index + 1]);
  return record;
}

/**
 * Places as one text with a space on both sides of each. Whoever names none is at the one that all
 * share.
 */
function spelt(places) {
  return ` ${places.length > 0 ? places.join(" ") : "here"} `;
}
