/** `await using`, in a separate file: runtimes without the syntax cannot parse it. */

export async function acquireInBlock(lock, work) {
  await using lease = await lock.acquire();
  return await work(lease);
}

export async function tryInBlock(lock, work) {
  await using lease = await lock.tryAcquire();
  return await work(lease);
}
