/**
 * The demo's Worker. The platform serves the files of `www/`; this Worker serves every path below
 * `/api/`.
 *
 * Each request creates its own client with `connect.fromEnv(env)`: a client holds only
 * configuration, so that costs nothing and needs no state at module level.
 */

import { contend } from "./api/contend.js";
import { describe } from "./api/failure.js";
import { Query } from "./api/input.js";
import { once, reset } from "./api/once.js";
import { outage } from "./api/outage.js";
import { write } from "./api/store.js";
import { token } from "./api/token.js";
import { listContenders, verdict } from "./api/verdict.js";

const routes = {
  "/api/once": { method: "POST", handle: once },
  "/api/reset": { method: "POST", handle: reset },
  "/api/contend": { method: "POST", handle: contend },
  "/api/write": { method: "POST", handle: write },
  "/api/cast": { method: "GET", handle: listContenders },
  "/api/verdict": { method: "GET", handle: verdict },
  "/api/outage": { method: "POST", handle: outage },
  "/api/token": { method: "POST", handle: token },
};

export default {
  async fetch(request, env, context) {
    const url = new URL(request.url);
    const route = Object.hasOwn(routes, url.pathname) ? routes[url.pathname] : null;
    if (!route) return refusal(404, "not-found", "No such path.");
    if (request.method !== route.method) {
      return refusal(405, "method-not-allowed", `Only ${route.method} is allowed here.`, { allow: route.method });
    }
    try {
      return await route.handle({ request, env, context, query: new Query(url.searchParams) });
    } catch (error) {
      const { status, code, message } = describe(error);
      return refusal(status, code, message);
    }
  },
};

function refusal(status, code, message, headers = {}) {
  return Response.json({ error: { code, message } }, { status, headers: { "cache-control": "no-store", ...headers } });
}
