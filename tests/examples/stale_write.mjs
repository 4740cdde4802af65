/** A server that writes under a lock, and a request that stalls until another one has written. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";

import { until } from "../runtimes/check.mjs";
import { newClient } from "../runtimes/project.mjs";
import { GATEWAY, call } from "./kit.mjs";

/**
 * Checks that the write of a request that lost its lock is rejected with 409, and that a newer
 * value stays. `address` accepts `PUT` with `body(number)`, and `stored` reads what is there.
 */
export async function staleWrite({ address, lock: name, body, stored }) {
  const lock = (await newClient(GATEWAY)).lock(name);
  const put = async (number) => {
    const { status, body: answer } = await call("PUT", address, { body: body(number) });
    assert.equal(status, 200, JSON.stringify(answer));
    return answer.token;
  };
  const first = await put(1);
  assert.deepEqual(await stored(), { value: 1, token: first });

  // The request acquires the lock, and waits for the rest of its body.
  const stalled = stall("PUT", address, body(2));
  await until(async () => (await lock.inspect()).locked, `the request holds ${name}`);
  assert.ok(await lock.forceRelease());
  const second = await put(3);
  assert.ok(second > first);

  const { status, text } = await stalled.finish();
  assert.equal(status, 409, text);
  assert.deepEqual(await stored(), { value: 3, token: second });
}

/** Sends a request except for the last byte of its body, which `finish` sends. */
export function stall(method, address, body) {
  const bytes = Buffer.from(body);
  const sent = request(address, { method, headers: { "content-length": bytes.length } });
  sent.write(bytes.subarray(0, -1));
  // A server on a slow machine may notice that the lock is lost before it reads the body. It
  // responds at once then, and closes the connection.
  const responded = responseTo(sent);
  responded.catch(() => {});
  sent.on("error", () => {});
  return {
    finish() {
      sent.end(bytes.subarray(-1));
      return responded;
    },
  };
}

async function responseTo(sent) {
  const [response] = await once(sent, "response");
  const parts = await response.toArray();
  return { status: response.statusCode, text: Buffer.concat(parts).toString() };
}
