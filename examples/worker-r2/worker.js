import { connect } from "edgelatch";

import { fencedPut } from "./fenced-put.js";

class Stale extends Error {}

export default {
  async fetch(request, env) {
    const key = new URL(request.url).pathname.match(/^\/files\/(\w+)$/)?.[1];
    if (!key) return new Response("not found", { status: 404 });
    if (request.method === "GET") {
      const file = await env.FILES.get(key);
      return file ? new Response(file.body, { headers: { "fencing-token": file.customMetadata.fence } }) : new Response("not found", { status: 404 });
    }
    try {
      const token = await connect.fromEnv(env).lock(`file:${key}`).run((lease) => write(env.FILES, key, request, lease));
      return Response.json({ token });
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
      return Response.json({ error: "another request has written this file meanwhile" }, { status: 409 });
    }
  },
};

async function write(bucket, key, request, lease) {
  // Work that may take longer than the lease lasts; here the client takes its time.
  const text = await request.text();
  if (!(await fencedPut(bucket, key, text, lease.token))) throw new Stale();
  return lease.token;
}
