/** The arguments of `edgelatch/testing`, and what its methods return. */

import assert from "node:assert/strict";
import { before, test } from "node:test";

/** Defines the tests; `load` returns the exports of the entry. */
export function argumentTests(load) {
  let createTestGateway;
  before(async () => ({ createTestGateway } = await load()));
  const create = (options) => createTestGateway(options);
  methodTests(create);
  requestTests(create);
}

function methodTests(createTestGateway) {
  test("invalid arguments are rejected with the option and what it accepts", () => {
    const gateway = createTestGateway();
    for (const [call, message] of [
      [() => createTestGateway({ now: 5 }), /`now`.*function/],
      [() => createTestGateway({ nwo: () => 5 }), /`nwo`.*no such option/],
      [() => gateway.loseReplies(-1), /`requests`.*0 to/],
      [() => gateway.refuse(1.5), /`requests`.*0 to/],
      [() => gateway.delayReplies("1"), /`ms`.*0 to/],
      [() => gateway.setDown(), /`isDown`.*true or false/],
      [() => gateway.expire(), /`name`.*string/],
      [() => gateway.hold(), /`name`.*string/],
      [() => gateway.hold("a", { kind: "groupLock" }), /`kind`.*lock, fairLock/],
      [() => gateway.hold("a", { leaseMs: 1 }), /`leaseMs`.*100 to/],
      [() => gateway.hold("a", { permits: 0 }), /`permits`.*1 to/],
    ]) {
      assert.throws(call, { name: "TypeError", message });
    }
    assert.deepEqual(gateway.held(), []);
  });

  test("another client cannot hold what is held, or what has no valid name", () => {
    const gateway = createTestGateway();
    const hold = gateway.hold("a");
    assert.throws(() => gateway.hold("a"), /it is held/);
    assert.throws(() => gateway.hold("no semaphore", { kind: "semaphore" }), /too few permits/);
    assert.throws(() => gateway.hold("a{"), /`name`/);
    assert.deepEqual([hold.release(), hold.release()], [true, false]);
    assert.ok(gateway.hold("a").token > hold.token);
  });

  test("gateways share nothing", () => {
    const [one, other] = [createTestGateway(), createTestGateway()];
    one.hold("a");
    assert.deepEqual(other.held(), []);
    other.hold("a");
  });
}

function requestTests(createTestGateway) {
  test("fetch fails as the fetch of a runtime does", async () => {
    const gateway = createTestGateway();
    const init = { method: "POST", headers: { authorization: `Bearer ${gateway.token}` }, body: "[]" };
    const post = (path, more) => gateway.fetch(`${gateway.url}/${path}`, { ...init, ...more });
    assert.equal((await post("pipeline")).status, 200);
    assert.equal((await post("pipeline", { headers: {} })).status, 401);
    assert.equal((await post("get/a")).status, 404);
    await assert.rejects(post("pipeline", { signal: AbortSignal.abort("enough") }), (reason) => reason === "enough");
    gateway.loseReplies();
    const isFailure = (expected) => ({ name, cause }) => name === "TypeError" && cause.code === expected;
    await assert.rejects(post("pipeline"), isFailure("ECONNRESET"));
    gateway.setDown(true);
    for (const headers of [init.headers, { ...init.headers, accept: "text/event-stream" }]) {
      await assert.rejects(post("subscribe/a", { headers }), isFailure("ECONNREFUSED"));
    }
  });

  test("a request that is aborted while its response is delayed fails with the reason", async () => {
    const gateway = createTestGateway();
    gateway.delayReplies(2 ** 31 - 1);
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${gateway.token}` };
    const sent = gateway.fetch(`${gateway.url}/pipeline`, { method: "POST", headers, body: "[]", signal: leaving.signal });
    leaving.abort("enough");
    await assert.rejects(sent, (reason) => reason === "enough");
  });

  test("a stream has its messages until it ends or is aborted", async () => {
    const gateway = createTestGateway();
    const leaving = new AbortController();
    const open = async (signal) => {
      const headers = { authorization: `Bearer ${gateway.token}`, accept: "text/event-stream" };
      const url = `${gateway.url}/subscribe/redisson_lock__channel:%7Ba%7D`;
      return (await gateway.fetch(url, { method: "POST", headers, body: "[]", signal })).body.getReader();
    };
    const hold = gateway.hold("a");
    const [kept, aborted] = [await open(), await open(leaving.signal)];
    const next = async (reader) => new TextDecoder().decode((await reader.read()).value);
    for (const reader of [kept, aborted]) assert.match(await next(reader), /^data: subscribe,/);
    const messages = [kept, aborted].map(next);
    hold.release();
    for (const message of messages) assert.match(await message, /^data: message,.*,0\n\n$/s);
    const pending = aborted.read();
    leaving.abort("enough");
    await assert.rejects(pending, (reason) => reason === "enough");
    const last = kept.read();
    gateway.setDown(true);
    assert.equal((await last).done, true);
  });
}
