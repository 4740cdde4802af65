/**
 * The use of the package in every environment: a lock is acquired, refused to another client, and
 * released.
 */
export async function use({ connect, EdgelatchError, InvalidOptionError }, { url, token, name }) {
  const lock = connect({ url, token }).lock(name);
  const lease = await lock.acquire({ waitMs: 20_000 });
  const other = await connect({ url, token }).lock(name).tryAcquire();
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
