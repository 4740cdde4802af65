/** Runs the suite in a Worker. Responds with a line of JSON for each event. */

import { env } from "cloudflare:workers";
import * as edgelatch from "edgelatch";
import * as webLocks from "edgelatch/web-locks";
import { run } from "./suite.mjs";

const [url, token] = [env.EDGELATCH_TEST_URL, env.EDGELATCH_TEST_TOKEN];

/** Created before the first request, when a Worker has neither I/O nor random numbers. */
const locks = webLocks.webLocks(edgelatch.connect({ url, token }), { namespace: "of-the-module" });

export default {
  async fetch(request, _env, context) {
    const only = new URL(request.url).searchParams.get("only") ?? undefined;
    const name = await locks.request("any", { mode: "shared" }, (lock) => lock.name);
    if (name !== "any") return new Response("not granted", { status: 500 });
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    const report = (event) => writer.write(new TextEncoder().encode(`${JSON.stringify(event)}\n`));
    const running = run({ edgelatch, webLocks, url, token, only, report });
    context.waitUntil(running.then(() => writer.close(), (error) => writer.abort(error)));
    return new Response(readable);
  },
};
