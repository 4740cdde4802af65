import { connect, WaitTimeoutError } from "edgelatch";

/** Sells from the stock, while the Java service does not count it: `POST` with the article. */
export default {
  async fetch(request, env) {
    try {
      return await connect.fromEnv(env).fencedLock("stock:7").run({ waitMs: 5_000 }, async (lease) => {
        const article = await request.text();
        return new Response(`sold ${article} under token ${lease.token}`);
      });
    } catch (error) {
      if (!(error instanceof WaitTimeoutError)) throw error;
      return new Response("the warehouse is being counted", { status: 503 });
    }
  },
};
