/** A door before the gateway: lets pages of any origin in, with no more headers than needed, and sees who asks. */

import { once } from "node:events";
import { createServer } from "node:http";

/** All that a page may send. A request with any other header does not get past the browser. */
const ALLOWED = "authorization, content-type";

const OWNER = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}:\d+/g;

export async function openFront(gateway) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    const origin = request.headers.origin;
    const headers = origin ? { "access-control-allow-origin": origin, vary: "origin" } : {};
    if (request.method === "OPTIONS") {
      response.writeHead(204, { ...headers, "access-control-allow-headers": ALLOWED, "access-control-max-age": "600" }).end();
      return;
    }
    const { status, body } = await forward(gateway, request, bodies);
    response.writeHead(status, { ...headers, "content-type": "application/json" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** The owners that asked for this lock so far. */
    owners: (name) => new Set(bodies.filter((body) => body.includes(name)).flatMap((body) => body.match(OWNER) ?? [])),
    close: () => (server.closeAllConnections(), server.close()),
  };
}

async function forward(gateway, request, bodies) {
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    bodies.push(body);
    const { authorization } = request.headers;
    const headers = { authorization, "content-type": "application/json" };
    const response = await fetch(gateway, { method: "POST", headers, body });
    return { status: response.status, body: await response.text() };
  } catch {
    // Whoever asked has gone, or the gateway has.
    return { status: 502, body: "" };
  }
}
