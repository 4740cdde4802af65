/**
 * A door before the gateway: lets pages of any origin in, with no more headers than needed, and
 * sees who asks.
 */

import { bodyOf, carry, openDoor, passOn } from "./door.mjs";

/** All that a page may send. A request with any other header does not get past the browser. */
const ALLOWED = "authorization, content-type";

const OWNER = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}:\d+/g;

export async function openFront(gateway) {
  const bodies = [];
  const door = await openDoor(async (request, response, gone) => {
    const origin = request.headers.origin;
    const headers = origin ? { "access-control-allow-origin": origin, vary: "origin" } : {};
    if (request.method === "OPTIONS") {
      response.writeHead(204, { ...headers, "access-control-allow-headers": ALLOWED, "access-control-max-age": "600" }).end();
      return;
    }
    try {
      const body = await bodyOf(request);
      bodies.push(body);
      await passOn(await carry(gateway, request, body, gone), response, headers);
    } catch {
      // Whoever asked has gone, or the gateway has.
      if (!response.headersSent) response.writeHead(502, headers);
      response.end();
    }
  });
  return {
    ...door,
    /** The owners that asked for this lock so far. */
    owners: (name) => new Set(bodies.filter((body) => body.includes(name)).flatMap((body) => body.match(OWNER) ?? [])),
  };
}
