import { DurableObject } from "cloudflare:workers";
import { connect } from "edgelatch";

/**
 * The stock of one article. A Durable Object handles one write at a time, so it can compare tokens
 * and write in one step.
 */
export class Stock extends DurableObject {
  async read() {
    return (await this.ctx.storage.get("pieces")) ?? 100;
  }

  /** Writes unless a newer token has written before; returns whether it did. */
  async write(pieces, token) {
    if (token < ((await this.ctx.storage.get("fence")) ?? 0)) return false;
    await this.ctx.storage.put({ pieces, fence: token });
    return true;
  }
}

export default {
  async fetch(request, env) {
    const [, article, action] = new URL(request.url).pathname.match(/^\/stock\/(\w+)(\/sell)?$/) ?? [];
    if (!article) return new Response("not found", { status: 404 });
    const stock = env.STOCK.get(env.STOCK.idFromName(article));
    if (request.method === "GET") return Response.json(await stock.read());
    if (action) return sell(connect.fromEnv(env).lock(`stock:${article}`), stock);
    // A service outside of Cloudflare, which holds the lock, writes under its own token.
    const token = Number(request.headers.get("fencing-token"));
    const isWritten = await stock.write(Number(await request.text()), token);
    return isWritten ? new Response("written") : new Response("stale", { status: 409 });
  },
};

/** Sells a piece: reads, decides and writes, while no other program changes the stock. */
function sell(lock, stock) {
  return lock.run(async (lease) => {
    const pieces = await stock.read();
    if (pieces === 0) return new Response("sold out", { status: 409 });
    const isWritten = await stock.write(pieces - 1, lease.token);
    return isWritten ? Response.json(pieces - 1) : new Response("stale", { status: 409 });
  });
}
