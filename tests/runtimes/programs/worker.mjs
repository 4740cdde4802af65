/** Runs the suite in a Worker, with a client at module level that serves all its requests. */

import { loaded } from "../watch.mjs";
import { env } from "cloudflare:workers";
import * as edgelatch from "edgelatch";
import { run } from "../suite.mjs";
import { cycle } from "./cycles.mjs";

loaded();
const [url, token] = [env.EDGELATCH_TEST_URL, env.EDGELATCH_TEST_TOKEN];

/** Created once, before the first request. These tests assert no response time. */
const locks = edgelatch.connect({ url, token, requestTimeoutMs: 60_000 });

const PULSE_MS = 20;

/** The signal of another request. */
let lentSignal;

/** How each request for a lock ended, by its id. Plain text: nothing here belongs to a request. */
const ended = {};

export default {
  async fetch(request, _env, context) {
    const { pathname, searchParams } = new URL(request.url);
    const [id, name] = [searchParams.get("id"), searchParams.get("name")];
    switch (pathname) {
      case "/suite":
        return new Response(suite(searchParams.get("only") ?? undefined, context));
      case "/cycles":
        return Response.json(await cycle(locks, name, Number(searchParams.get("count"))));
      case "/hold": {
        const lease = await locks.lock(name).acquire({ leaseMs: 2_000, waitMs: 120_000, maxRequests: 10_000 });
        return Response.json({ token: lease.token });
      }
      case "/lend-signal":
        lentSignal = request.signal;
        return new Response(searchParams.has("stays") ? pulsing(request.signal).readable : "lent");
      case "/use-lent-signal": {
        const first = await locks.lock(name).acquire({ signal: lentSignal }).then((lease) => lease.release(), (error) => error.name);
        const second = await locks.lock(name).acquire({ signal: request.signal });
        return Response.json({ first, second: await second.release() });
      }
      case "/outlive": {
        // The lease in Redis is fifteen seconds at a time. On a busy machine a renewal may be seven
        // seconds late.
        const { read } = locks.readWriteLock(name, { peerWatchdogMs: 15_000 });
        const lease = await read.acquire({ leaseMs: 600_000 });
        const stays = new Promise((lost) => lease.signal.addEventListener("abort", lost));
        if (searchParams.has("stays")) context.waitUntil(stays);
        return Response.json({ token: lease.token });
      }
      case "/ended":
        return Response.json(ended);
      case "/with-signal": {
        const { readable, signal, finish } = pulsing(request.signal);
        // Continues after its client has disconnected, for as long as the undoing takes.
        context.waitUntil(runUnderLock(id, name, { waitMs: "until-aborted", signal }).then(finish, finish));
        return new Response(readable);
      }
      case "/without-signal":
        return Response.json(await runUnderLock(id, name, { waitMs: 60_000, maxRequests: 10_000 }));
      default:
        return new Response("no such page", { status: 404 });
    }
  },
};

/** Returns a body with a line of JSON for each event of the suite. */
function suite(only, context) {
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  const report = (event) => writer.write(new TextEncoder().encode(`${JSON.stringify(event)}\n`));
  const running = run({ edgelatch, url, token, loads: [], faulty: env.EDGELATCH_TEST_FAULTY, only, report });
  context.waitUntil(running.then(() => writer.close(), (error) => writer.abort(error)));
  return readable;
}

/**
 * Returns a body that begins before the response is known: workerd detects that a client has
 * disconnected when it sends data.
 */
function pulsing(requestSignal) {
  const controller = new AbortController();
  const leave = () => controller.abort(new DOMException("the client has gone", "AbortError"));
  requestSignal.addEventListener("abort", leave);
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  const write = (text) => writer.write(new TextEncoder().encode(text)).catch(leave);
  const pulse = setInterval(write, PULSE_MS, " ");
  const finish = async (result) => {
    clearInterval(pulse);
    await write(JSON.stringify(result));
    await writer.close().catch(() => {});
  };
  return { readable, signal: controller.signal, finish };
}

async function runUnderLock(id, name, options) {
  try {
    const result = await locks.lock(name).run(options, async (lease) => ({ held: await lease.isHeld(), token: lease.token }));
    ended[id] = "worked";
    return result;
  } catch (error) {
    ended[id] = error.name;
    throw error;
  }
}
