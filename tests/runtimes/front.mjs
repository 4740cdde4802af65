/**
 * A proxy before the gateway: allows pages of any origin, with only the required headers, and
 * records their requests.
 */

import { bodyOf, forwardRequest, openProxyServer, forwardResponse } from "./proxy_server.mjs";

/** All headers that a page may send; browsers block requests with any other header. */
const ALLOWED = "authorization, content-type";

const OWNER = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}:\d+/g;

export async function openFront(gateway) {
  const bodies = [];
  const proxy = await openProxyServer(async (request, response, gone) => {
    const origin = request.headers.origin;
    const headers = origin ? { "access-control-allow-origin": origin, vary: "origin" } : {};
    if (request.method === "OPTIONS") {
      response.writeHead(204, { ...headers, "access-control-allow-headers": ALLOWED, "access-control-max-age": "600" }).end();
      return;
    }
    try {
      const body = await bodyOf(request);
      bodies.push(body);
      await forwardResponse(await forwardRequest(gateway, request, body, gone), response, headers);
    } catch {
      // The client or the gateway has disconnected.
      if (!response.headersSent) response.writeHead(502, headers);
      response.end();
    }
  });
  return {
    ...proxy,
    /** The owners whose requests for this lock have arrived so far. */
    owners: (name) => new Set(bodies.filter((body) => body.includes(name)).flatMap((body) => body.match(OWNER) ?? [])),
  };
}
