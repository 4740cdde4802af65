/**
 * A Worker with a database and a bucket, which executes the requests of the test on them. `put.mjs`
 * is the recipe of docs/fencing.md.
 */

import { fencedPut } from "./put.mjs";

export default {
  async fetch(request, { DB, BUCKET }) {
    const { statements, put } = await request.json();
    if (put) {
      const [key, body, token] = put;
      return Response.json({ written: (await fencedPut(BUCKET, key, body, token)) !== null });
    }
    const prepared = statements.map(({ sql, values }) => DB.prepare(sql).bind(...values));
    const results = await DB.batch(prepared);
    return Response.json(results.map(({ meta, results }) => ({ changes: meta.changes, rows: results })));
  },
};
