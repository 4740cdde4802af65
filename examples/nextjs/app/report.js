import { connect } from "edgelatch";

/** Writes the report, unless another request of either runtime is writing it. */
export async function report() {
  const lease = await connect.fromEnv().lock("next-report").tryAcquire();
  if (lease === null) return Response.json({ error: "another request is writing the report" }, { status: 409 });
  try {
    return Response.json({ token: lease.token });
  } finally {
    await lease.release();
  }
}
