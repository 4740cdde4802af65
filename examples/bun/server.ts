import { Database } from "bun:sqlite";

const database = new Database(process.env.DATABASE ?? "invoices.sqlite", { create: true, strict: true });
database.run("CREATE TABLE IF NOT EXISTS invoice (id TEXT PRIMARY KEY, total INTEGER NOT NULL, fence INTEGER NOT NULL)");

/** Changes no row if a newer token is stored. */
const upsert = database.query(`
  INSERT INTO invoice (id, total, fence) VALUES ($id, $total, $fence)
  ON CONFLICT (id) DO UPDATE SET total = excluded.total, fence = excluded.fence
  WHERE invoice.fence <= excluded.fence`);
const select = database.query("SELECT total, fence FROM invoice WHERE id = $id");

const server = Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  routes: {
    "/invoices/:id": {
      GET: ({ params: { id } }) => Response.json(select.get({ id })),
      PUT: async (request) => {
        const fence = Number(request.headers.get("fencing-token"));
        if (!Number.isSafeInteger(fence) || fence <= 0) return new Response("a fencing token, please", { status: 428 });
        const { total } = await request.json();
        const { changes } = upsert.run({ id: request.params.id, total, fence });
        return changes === 1 ? new Response("written") : new Response("stale", { status: 409 });
      },
    },
  },
});
console.log(`listening on ${server.url.origin}`);
