/**
 * Guards, which reject writes of stale leases; scripts that run only while a lease is held; and the
 * events of a lease.
 */

import { ok, rejection, rejects, same, throws, until } from "../check.mjs";
import { advanceTime } from "../watch.mjs";

export const fencing = {
  // S33.
  async "a guard rejects a write with an older fencing token than its newest"(world) {
    const { locks } = world.client();
    const lock = locks.lock(world.name());
    const guard = locks.guard(`{${lock.name}}:value`);
    // Never renewed: a renewal would detect the end before the guard rejects the write, if that
    // takes ten seconds.
    const old = await lock.acquire({ leaseMs: 600_000 });
    same([await guard.newest(), await guard.set(old, "first"), await guard.newest()], [null, undefined, old.token]);
    await guard.set(old, "again", { lifeMs: 60_000, name: lock.name });
    await lock.forceRelease();

    const young = await lock.acquire();
    same([await guard.claim(young), await guard.newest()], [undefined, young.token]);
    const stale = await rejects(guard.set(old, "late"), world.StaleTokenError, { reason: "superseded", newest: young.token });
    ok(stale.message.length > 5, "the message says what happened");
    await rejects(guard.delete(old), world.StaleTokenError);
    same(await old.release(), "lost");
    same(await young.eval("return redis.call('GET', KEYS[1])", [`{${lock.name}}:nothing`]), null);
    await guard.delete(young);
    await young.release();
    await rejects(guard.set(young, "after its end"), world.LeaseLostError, { reason: "gone" });
  },

  async "a guard rejects invalid leases, values, keys and options"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    const lease = await lock.acquire();
    const guard = locks.guard("a key", { memoryMs: "for-ever" });
    same(guard.key, "a key");
    const requests = sent.length;
    for (const other of [undefined, null, {}, "lease", lock, guard, locks]) {
      await rejects(guard.set(other, "x"), world.InvalidOptionError, { option: "lease" });
      await rejects(guard.claim(other), world.InvalidOptionError, { option: "lease" });
    }
    for (const value of [undefined, null, 5, {}, "\ud800"]) {
      await rejects(guard.set(lease, value), world.InvalidOptionError, { option: "value" });
    }
    await rejects(guard.set(lease, "x", { lifeMs: 0 }), world.InvalidOptionError, { option: "lifeMs" });
    await rejects(guard.delete(lease, { name: "another" }), world.InvalidOptionError, { option: "name" });
    for (const key of ["", "{}", 5, undefined]) throws(() => locks.guard(key), world.InvalidOptionError, { option: "key" });
    for (const memoryMs of [59_999, "long", null]) {
      throws(() => locks.guard("a", { memoryMs }), world.InvalidOptionError, { option: "memoryMs" });
    }
    for (const lock of ["", "redisson_x", 5, null]) {
      throws(() => locks.guard("a", { lock }), world.InvalidOptionError, { option: "lock" });
    }
    same(sent.length, requests, "requests");
    await lease.release();
  },

  async "a guard rejects a lease of another lock and names both locks unless redactNames is set"(world) {
    const { locks, sent } = world.client();
    const [own, other] = [locks.lock(world.name()), locks.lock(world.name())];
    const [lease, foreign] = [await own.acquire(), await other.acquire()];
    const key = `{${own.name}}:value`;
    const first = locks.guard(key);
    await first.set(lease, "value");
    const named = locks.guard(key, { lock: own.name });
    const requests = sent.length;
    for (const guard of [first, named]) {
      for (const write of [guard.set(foreign, "x"), guard.delete(foreign), guard.claim(foreign, { name: other.name })]) {
        const { message } = await rejects(write, world.InvalidOptionError, { option: "lease" });
        ok([own.name, other.name].every((name) => message.includes(name)), message);
      }
    }
    same(sent.length, requests, "requests");
    await named.claim(lease);

    const redacting = world.client({ redactNames: true }).locks.guard(key, { lock: own.name });
    const error = await rejects(redacting.claim(foreign), world.InvalidOptionError, { option: "lease" });
    ok([own.name, other.name].every((name) => ![error.message, error.accepted, error.stack].join().includes(name)), error.message);

    // For a lease of several locks the guard's lock is the first, unless another is named.
    await Promise.all([lease.release(), foreign.release()]);
    const both = await locks.multiLock([other, own]).acquire();
    const second = both.name === own.name ? other.name : own.name;
    const guard = locks.guard(`{${second}}:value of the second`, { lock: second });
    await rejects(guard.claim(both), world.InvalidOptionError, { option: "lease" });
    await guard.claim(both, { name: second });
    await both.release();
  },

  async "eval returns the script's result while the lease is held"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const key = `{${lock.name}}:total`;
    same(await lease.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", [key], ["5"]), 5);
    same(await lease.eval("return { 1, 'two', false, { 3 } }"), [1, "two", null, [3]]);
    const lengths = "return { #ARGV, #ARGV[1], #ARGV[2], #ARGV[3], ARGV[4] }";
    same(await lease.eval(lengths, [], ["", "1:2", "\u{1f512}\u00e9\0", "z"]), [4, 0, 3, 7, "z"]);
    same(await lease.eval("return redis.call('GET', KEYS[1])", [key], [], { once: false }), "5");
    await rejects(lease.eval("return redis.call('NOSUCH')"), world.ScriptFailedError);
    const uncompiled = await rejection(lease.eval("return +"));
    ok(uncompiled instanceof world.ScriptFailedError && uncompiled.message.includes("unexpected symbol near '+'"), uncompiled.message);
    await rejects(lease.eval("return 1", ["elsewhere"]), world.InvalidOptionError, { option: "keys" });
    for (const [values, option] of [[[], "script"], [[""], "script"], [["return 1", "k"], "keys"], [["return 1", [], [5]], "args"]]) {
      await rejects(lease.eval(...values), world.InvalidOptionError, { option });
    }
    await rejects(lease.eval("return 1", [], [], { once: "yes" }), world.InvalidOptionError, { option: "once" });
    await lock.forceRelease();
    await rejects(lease.eval("return redis.call('INCR', KEYS[1])", [key]), world.LeaseLostError, { reason: "gone" });
    const next = await lock.acquire();
    same(await next.eval("return redis.call('GETDEL', KEYS[1])", [key]), "5");
    await next.release();
  },

  async "eval runs a script once when its response is lost"(world) {
    let responsesToLose = 0;
    const losing = async (input, init) => {
      const response = await fetch(input, init);
      if (response.ok && responsesToLose-- > 0) throw new TypeError("the connection broke");
      return response;
    };
    const lock = world.lock({ fetch: losing });
    const lease = await lock.acquire();
    const count = (text) => lease.eval(text, [`{${lock.name}}:count`]);
    await count("return redis.call('DEL', KEYS[1])");
    responsesToLose = 1;
    same(await count("return redis.call('INCR', KEYS[1])"), 1);
    same(await count("return redis.call('GETDEL', KEYS[1])"), "1");
    await lease.release();
  },

  async "lease events report the grant, the renewal and the release, then end"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const events = lease.events();
    const next = async () => (await events.next()).value;
    const first = await next();
    same([first.type, first.remainingMs > 0, Object.isFrozen(first)], ["held", true, true]);
    await lease.renew({ leaseMs: 60_000 });
    const second = await next();
    same([second.type, second.remainingMs > first.remainingMs], ["renewed", true]);
    const [released] = await Promise.all([next(), lease.release()]);
    same([released.type, released.remainingMs], ["released", 0]);
    same(await events.next(), { done: true });
  },

  async "lease events report a lost lease to every listener"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const listen = async () => {
      const types = [];
      for await (const { type, reason } of lease.events()) types.push(reason ?? type);
      return types;
    };
    const both = [listen(), listen()];
    await lock.forceRelease();
    same(await lease.isHeld(), false);
    same(await Promise.all(both), [["held", "gone"], ["held", "gone"]]);
    same((await lease.events().next()).value.type, "lost", "a late listener");
  },

  // S27, S57.
  async "a grant with an older fencing token is released and the clock step is reported"(world) {
    let behindMs = 0;
    const rewound = async (...call) => {
      const { result, ...rest } = await (await fetch(...call)).json();
      if (!result) return Response.json(rest, { status: 400 });
      const [code, value, ms, serverMs, echo] = result;
      const token = value > 1e12 ? String(value - 1000 * behindMs) : value;
      return Response.json({ result: [code, token, ms, String(serverMs - behindMs), echo] });
    };
    const { locks } = world.client({ fetch: rewound, wakeups: "off" });
    const lock = locks.lock(world.name());
    same(await lock.run(() => "done"), "done");
    behindMs = 600_000;
    await rejects(lock.tryAcquire(), world.GatewayRefusedError, { reason: "token-regressed" });
    const { type, byMs } = (await locks.events().next()).value;
    same(type, "clock-set-back");
    ok(byMs > 500_000 && byMs <= 600_000, `by ${byMs} ms`);
    same((await lock.inspect()).locked, false);
    behindMs = 0;
    same(await lock.run(() => "done"), "done");
  },

  // S47.
  async "a waiter sends no retry during the Retry-After of a 429 response"(world) {
    const now = 1_800_000_000_000;
    const at = (ms) => new Date(ms).toUTCString();
    for (const retryAfter of ["60", at(now + 60_000)]) {
      const refuse = async () => new Response("", { status: 429, headers: { "retry-after": retryAfter, date: at(now) } });
      const { locks, sent } = world.client({ fetch: refuse, wakeups: "off" });
      const end = locks.lock(world.name()).acquire({ waitMs: 50_000 }).catch((error) => error);
      await until(() => sent.length > 0, "the first try");
      let error;
      end.then((reason) => (error = reason));
      // If `Retry-After` were ignored, retries would be sent all the time. The wait goes on for
      // longer than a busy machine takes for these turns.
      for (let second = 0; second < 20; second += 1) {
        advanceTime(1_000);
        await new Promise((next) => setTimeout(next));
      }
      same(sent.length, 1, `requests of the wait, Retry-After: ${retryAfter}`);
      await until(() => (advanceTime(1_000), error), "the end of the wait");
      ok(error instanceof world.OutcomeUnknownError, String(error));
      // The last try has three attempts, and so has its undoing.
      ok(sent.length <= 7, `${sent.length} requests`);
    }
  },
};
