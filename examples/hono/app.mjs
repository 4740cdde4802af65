import { connect } from "edgelatch";
import { Hono } from "hono";

import { locked } from "./locked.mjs";

const locks = connect.fromEnv();

export const app = new Hono();

app.post("/orders/:id/pay", locked(locks, (c) => `order:${c.req.param("id")}`, { waitMs: 5_000 }), async (c) => {
  const lease = c.get("lease");
  const key = `{${lease.name}}:paid`;
  const paid = await lease.eval("return redis.call('GET', KEYS[1])", [key], [], { once: false });
  if (paid !== null) return c.json({ error: "already paid", token: Number(paid) }, 409);
  // Charge the card here, and pass `lease.signal` to the request.
  await lease.eval("redis.call('SET', KEYS[1], ARGV[1])", [key], [`${lease.token}`]);
  return c.json({ token: lease.token });
});
