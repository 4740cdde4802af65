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
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const { status, type, body } = await forward(gateway, request, bodies, gone.signal);
    response.writeHead(status, { ...headers, "content-type": type });
    try {
      // A stream is passed on as it comes.
      for await (const chunk of body) response.write(chunk);
    } catch {
      // Whoever listened has gone, or the gateway has.
    }
    response.end();
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

async function forward(gateway, request, bodies, signal) {
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    bodies.push(body);
    const { authorization, accept } = request.headers;
    const headers = { authorization, accept, "content-type": "application/json" };
    const response = await fetch(new URL(request.url, gateway), { method: "POST", headers, body, signal });
    return { status: response.status, type: response.headers.get("content-type") ?? "text/plain", body: response.body ?? [] };
  } catch {
    // Whoever asked has gone, or the gateway has.
    return { status: 502, type: "text/plain", body: [] };
  }
}
