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
const half = ({ status, body, type }) => ({ status, body: body.slice(0, -20), type, length: body.length });

/**
 * The number of executions, the response, and whether a copy is kept. Without a response the
 * connection is closed.
 */
export const ACTIONS = {
  "lost-before": { executions: 0 },
  "lost-before-and-late": { executions: 0, isKept: true },
  "lost-after": { executions: 1 },
  "lost-after-twice-and-late": { executions: 2, isKept: true },
  cut: { executions: 1, say: half },
  twice: { executions: 2, say: (truth) => truth },
  late: { executions: 1, say: (truth) => truth, isKept: true },
  null: { executions: 1, say: () => json('{"result":null}') },
  empty: { executions: 1, say: () => json("") },
  ok: { executions: 1, say: () => json('{"result":"OK"}') },
  another: { executions: 1, say: () => json('{"result":["0","0000000000000000","1","1","1795268812119001"]}') },
  page: { executions: 1, say: () => page(200) },
};
for (const status of [429, 500, 502, 503, 504]) {
  ACTIONS[`${status}-before`] = { executions: 0, say: () => page(status) };
  ACTIONS[`${status}-after`] = { executions: 1, say: () => page(status) };
}

const scripts = JSON.parse(readFileSync(new URL("../vectors/scripts.json", import.meta.url), "utf8"));
const operations = new Map(
  Object.entries(scripts).flatMap(([name, digests]) => Object.values(digests).map((digest) => [digest, name.slice(name.indexOf("_") + 1)])),
);

export async function openFaulty(gateway) {
  const met = new Set();
  const copies = new Map();
  return openProxyServer(async (request, response, gone) => {
    try {
      if (isForCopies(request.url)) {
        const name = decodeURIComponent(request.url.slice("/copies/".length));
        for (const copy of copies.get(name)?.splice(0) ?? []) await copy();
        response.end(met.has(name) ? "met" : "not met");
        return;
      }
      const body = await bodyOf(request);
      const [name, action, operation] = NAME.exec(body) ?? [];
      if (request.url.includes("subscribe") || met.has(name) || !named(body).includes(operation)) {
        return await forwardResponse(await forwardRequest(gateway, request, body, gone), response);
      }
      met.add(name);
      const { executions, say, isKept } = ACTIONS[action];
      // The client's disconnection does not cancel a copy.
      const execute = () => forwardRequest(gateway, request, body);
      if (isKept) copies.set(name, [execute]);
      let truth;
      for (let i = 0; i < executions; i += 1) {
        const answer = await execute();
        truth = { status: answer.status, body: await answer.text(), type: answer.headers.get("content-type") };
      }
      if (!say) return void response.destroy();
      const said = say(truth);
      response.writeHead(said.status, { "content-type": said.type, "content-length": said.length ?? Buffer.byteLength(said.body) });
      if (said.length) response.write(said.body, () => response.destroy());
      else response.end(said.body);
    } catch {
      // The client or the gateway has disconnected.
      response.destroy();
    }
  }, isForCopies);
}

const isForCopies = (path) => path.startsWith("/copies/");

/** Returns the operations of the commands in a body, by their scripts. */
function named(body) {
  const parsed = JSON.parse(body);
  const commands = Array.isArray(parsed[0]) ? parsed : [parsed];
  return commands.map(([command, script]) => {
    const digest = command === "EVAL" ? createHash("sha1").update(script).digest("hex") : script;
    return operations.get(digest);
  });
}
