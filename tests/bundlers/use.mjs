/**
 * The use of the package in every environment: a lock is acquired, refused to another client, and
 * released.
 */
export async function use({ connect, EdgelatchError, InvalidOptionError }, { url, token, name }) {
  // A busy machine may respond late.
  const options = { url, token, requestTimeoutMs: 60_000 };
  const lock = connect(options).lock(name);
  const lease = await lock.acquire({ waitMs: 120_000 });
  const other = await connect(options).lock(name).tryAcquire();
  if (other !== null) throw new Error("two clients hold it");
  try {
    connect({ url: "redis://localhost", token });
  } catch (error) {
    if (!(error instanceof InvalidOptionError && error instanceof EdgelatchError)) throw error;
  }
  return `token ${lease.token}, ${await lease.release()}`;
}

/** The expected result of `use`. */
export const EXPECTED = /^token \d{16}, released$/;
