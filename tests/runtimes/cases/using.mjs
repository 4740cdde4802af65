/** `await using`, in a file of its own: runtimes without the syntax cannot even read it. */

export async function acquireInBlock(lock, work) {
  await using lease = await lock.acquire();
  return await work(lease);
}

export async function tryInBlock(lock, work) {
  await using lease = await lock.tryAcquire();
  return await work(lease);
}
