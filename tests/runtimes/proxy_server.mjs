/**
 * The common part of the proxies before the gateway: a server, the body of a request, and
 * forwarding.
 */

import { once } from "node:events";
import { createServer } from "node:http";

import { isExpectedUrl } from "./check.mjs";

/**
 * Opens a proxy; `handle` gets each request, its response, and a signal that aborts when the client
 * disconnects. Requests for paths that neither the package nor `knows` uses are not forwarded, but
 * recorded in `unexpected`.
 */
export async function openProxyServer(handle, knows = () => false) {
  const unexpected = [];
  const server = createServer((request, response) => {
    if (!isExpectedUrl(request.url) && !knows(request.url)) {
      unexpected.push(`${request.method} ${request.url}`);
      return response.writeHead(404).end();
    }
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    return handle(request, response, gone.signal);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, unexpected, close: () => (server.closeAllConnections(), server.close()) };
}

export async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Forwards a request to the gateway, with this body and only the required headers. */
export function forwardRequest(gateway, { url, headers: { authorization, accept } }, body, signal) {
  const headers = { authorization, accept, "content-type": "application/json" };
  return fetch(new URL(url, gateway), { method: "POST", headers, body, signal });
}

/** Forwards a response chunk by chunk, since it may be a stream. */
export async function forwardResponse({ status, headers, body }, response, more = {}) {
  response.writeHead(status, { ...more, "content-type": headers.get("content-type") ?? "text/plain" });
  for await (const chunk of body ?? []) response.write(chunk);
  response.end();
}
