import { createServer } from "node:http";
import { json } from "node:stream/consumers";

import { connect } from "edgelatch";
import pg from "pg";

const TABLE = `
  CREATE TABLE IF NOT EXISTS invoice (id TEXT PRIMARY KEY, total BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`;

/** Writes the row unless a newer token is stored. */
const UPSERT = `
  INSERT INTO invoice (id, total, fence) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO UPDATE SET total = excluded.total, fence = excluded.fence
  WHERE invoice.fence <= excluded.fence`;

class Stale extends Error {}

const locks = connect.fromEnv();
const database = new pg.Pool();
await database.query(TABLE);

async function handle(request, response) {
  const id = request.url.match(/^\/invoices\/(\w+)$/)?.[1];
  if (!id) return respond(response, 404, { error: "not found" });
  if (request.method === "GET") {
    const { rows } = await database.query("SELECT total, fence FROM invoice WHERE id = $1", [id]);
    return respond(response, 200, rows[0] ?? null);
  }
  try {
    const token = await locks.lock(`pg-invoice:${id}`).run((lease) => write(id, request, lease));
    respond(response, 200, { token });
  } catch (error) {
    if (!(error instanceof Stale)) throw error;
    respond(response, 409, { error: "another request has written this invoice meanwhile" });
  }
}

async function write(id, request, lease) {
  // Work that may take longer than the lease lasts; here the client takes its time.
  const { total } = await json(request);
  const { rowCount } = await database.query(UPSERT, [id, total, lease.token]);
  if (rowCount === 0) throw new Stale();
  return lease.token;
}

function respond(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    respond(response, 500, { error: "failed" });
  });
});
server.listen(Number(process.env.PORT ?? 3000), () => console.log(`listening on http://localhost:${server.address().port}`));
