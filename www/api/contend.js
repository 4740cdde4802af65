/** Runs one contender of the page, and reports its events line by line. */

import { connect } from "edgelatch";

import { describe } from "./failure.js";
import { pageKey } from "./names.js";
import { LeftError } from "./queue.js";
import { ROLES } from "./roles.js";
import { EventStream } from "./event-stream.js";
import { Checker } from "./checker.js";

/**
 * `POST /api/contend?kind=…&role=…&run=<name>&id=<name>&holdMs=<number>&leaseMs=<number>`, and
 * optionally `after` and `number` (the count that the checker must show before the contender
 * starts) and `delayMs` (a delay after that). Returns a stream of JSON lines.
 */
export function contend({ request, env, context, query }) {
  const roles = ROLES[query.oneOf("kind", Object.keys(ROLES))];
  const role = query.oneOf("role", Object.keys(roles));
  const run = query.name("run");
  const id = query.name("id");
  const contender = {
    env,
    run,
    id,
    role,
    holdMs: query.integer("holdMs", 100, 15_000),
    leaseMs: query.integer("leaseMs", 500, 15_000),
    delayMs: query.integer("delayMs", 0, 30_000, 0),
    after: [query.oneOf("after", ["joined", "alone", "shared"], "joined"), query.integer("number", 0, 100, 0)],
    locks: connect.fromEnv(env),
    key: pageKey(run),
    checker: new Checker(env, run, id),
    events: new EventStream(request.signal),
  };
  // Keeps the Worker alive briefly after its client has disconnected, so that a waiter can still
  // undo its request.
  context.waitUntil(live(contender, roles[role]));
  return new Response(contender.events.readable, {
    headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
  });
}

async function live(contender, role) {
  const { events } = contender;
  try {
    await role(contender);
  } catch (error) {
    if (events.disconnected.aborted) return;
    sendFailure(events, error);
  } finally {
    events.end();
  }
}

function sendFailure(events, error) {
  if (error instanceof LeftError) return events.send("left");
  const { code, message } = describe(error);
  // A lost lease was reported before, with its reason.
  if (code !== "lease-lost") events.send("error", { code, message });
}
