import { connect } from "edgelatch";

export default {
  /** Puts an order into the queue: `POST /orders/42`. */
  async fetch(request, env) {
    const id = new URL(request.url).pathname.match(/^\/orders\/(\w+)$/)?.[1];
    if (request.method !== "POST" || !id) return new Response("not found", { status: 404 });
    await env.ORDERS.send({ id });
    return new Response("queued", { status: 202 });
  },

  async queue(batch, env) {
    const locks = connect.fromEnv(env);
    for (const message of batch.messages) await charge(locks, message);
  },
};

/**
 * Charges an order once. The guard is the record: it remembers for a day the token under which the
 * order was charged, and rejects a consumer that was stopped and has lost its lock.
 */
async function charge(locks, message) {
  const { id } = message.body;
  const lease = await locks.lock(`order:${id}`).tryAcquire();
  // Another consumer is at work: look again later, since it may fail.
  if (lease === null) return message.retry();
  try {
    const guard = locks.guard(`order:${id}:status`, { lock: `order:${id}` });
    if ((await guard.newest()) === null) {
      // Charge the card here, with `lease.signal`, and with `id` as the idempotency key: if this
      // consumer ends before it has recorded the charge, the next one charges under another token.
      await guard.set(lease, "charged");
      console.log(`charged order ${id} under token ${lease.token}`);
    } else {
      console.log(`order ${id} was charged before`);
    }
    message.ack();
  } finally {
    await lease.release();
  }
}
