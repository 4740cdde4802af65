import { connect } from "edgelatch";

/** Writes the row unless a newer token is stored. */
const UPSERT = `
  INSERT INTO invoice (id, total, fence) VALUES (?1, ?2, ?3)
  ON CONFLICT (id) DO UPDATE SET total = excluded.total, fence = excluded.fence
  WHERE invoice.fence <= excluded.fence`;

class Stale extends Error {}

export default {
  async fetch(request, env) {
    const id = new URL(request.url).pathname.match(/^\/invoices\/(\w+)$/)?.[1];
    if (!id) return new Response("not found", { status: 404 });
    if (request.method === "GET") return Response.json(await env.DB.prepare("SELECT * FROM invoice WHERE id = ?1").bind(id).first());
    try {
      const token = await connect.fromEnv(env).lock(`invoice:${id}`).run((lease) => write(env.DB, id, request, lease));
      return Response.json({ token });
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
      return Response.json({ error: "another request has written this invoice meanwhile" }, { status: 409 });
    }
  },
};

async function write(database, id, request, lease) {
  // Work that may take longer than the lease lasts; here the client takes its time.
  const { total } = await request.json();
  const { meta } = await database.prepare(UPSERT).bind(id, total, lease.token).run();
  if (meta.changes === 0) throw new Stale();
  return lease.token;
}
