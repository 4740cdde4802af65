/**
 * A proxy before the gateway that injects faults. A lock's name,
 * `fault:<action>:<operation>:<anything>`, says which fault the first request of that operation
 * about that lock gets. A request for `/copies/<name>` delivers the copies of that request, and its
 * response says whether the fault was injected.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { bodyOf, forwardRequest, openProxyServer, forwardResponse } from "./proxy_server.mjs";

const NAME = /fault:([a-z0-9-]+):([a-z]+):[0-9a-f-]{36}/;
const page = (status) => ({ status, body: "<!doctype html><title>Sorry</title>", type: "text/html" });
const json = (body, status = 200) => ({ status, body, type: "application/json" });
const truncated = ({ status, body, type }) => ({ status, body: body.slice(0, -20), type, length: body.length });

/**
 * The number of executions, the response, and whether a copy is kept. Without a response the
 * connection is closed.
 */
export const ACTIONS = {
  "lost-before": { executions: 0 },
  "lost-before-and-late": { executions: 0, isKept: true },
  "lost-after": { executions: 1 },
  "lost-after-twice-and-late": { executions: 2, isKept: true },
  cut: { executions: 1, respond: truncated },
  twice: { executions: 2, respond: (original) => original },
  late: { executions: 1, respond: (original) => original, isKept: true },
  null: { executions: 1, respond: () => json('{"result":null}') },
  empty: { executions: 1, respond: () => json("") },
  ok: { executions: 1, respond: () => json('{"result":"OK"}') },
  another: { executions: 1, respond: () => json('{"result":["0","0000000000000000","1","1","1795268812119001"]}') },
  page: { executions: 1, respond: () => page(200) },
};
for (const status of [429, 500, 502, 503, 504]) {
  ACTIONS[`${status}-before`] = { executions: 0, respond: () => page(status) };
  ACTIONS[`${status}-after`] = { executions: 1, respond: () => page(status) };
}

const scripts = JSON.parse(readFileSync(new URL("../vectors/scripts.json", import.meta.url), "utf8"));
const operations = new Map(
  Object.entries(scripts).flatMap(([name, digests]) => Object.values(digests).map((digest) => [digest, name.slice(name.indexOf("_") + 1)])),
);

export async function openFaulty(gateway) {
  const injected = new Set();
  const copies = new Map();
  return openProxyServer(async (request, response, gone) => {
    try {
      if (isForCopies(request.url)) {
        const name = decodeURIComponent(request.url.slice("/copies/".length));
        for (const copy of copies.get(name)?.splice(0) ?? []) await copy();
        response.end(injected.has(name) ? "injected" : "not injected");
        return;
      }
      const body = await bodyOf(request);
      const [name, action, operation] = NAME.exec(body) ?? [];
      if (request.url.includes("subscribe") || injected.has(name) || !operationsOf(body).includes(operation)) {
        return await forwardResponse(await forwardRequest(gateway, request, body, gone), response);
      }
      injected.add(name);
      const { executions, respond, isKept } = ACTIONS[action];
      // The client's disconnection does not cancel a copy.
      const execute = () => forwardRequest(gateway, request, body);
      if (isKept) copies.set(name, [execute]);
      let original;
      for (let i = 0; i < executions; i += 1) {
        const result = await execute();
        original = { status: result.status, body: await result.text(), type: result.headers.get("content-type") };
      }
      if (!respond) return void response.destroy();
      const sent = respond(original);
      response.writeHead(sent.status, { "content-type": sent.type, "content-length": sent.length ?? Buffer.byteLength(sent.body) });
      if (sent.length) response.write(sent.body, () => response.destroy());
      else response.end(sent.body);
    } catch {
      // The client or the gateway has disconnected.
      response.destroy();
    }
  }, isForCopies);
}

const isForCopies = (path) => path.startsWith("/copies/");

/** Returns the operations of the commands in a body, by their scripts. */
function operationsOf(body) {
  const parsed = JSON.parse(body);
  const commands = Array.isArray(parsed[0]) ? parsed : [parsed];
  return commands.map(([command, script]) => {
    const digest = command === "EVAL" ? createHash("sha1").update(script).digest("hex") : script;
    return operations.get(digest);
  });
}
