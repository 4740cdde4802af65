// Measures the time until a program holds its first lock. Imports nothing that a library may import
// too: the library would find it loaded, and seem to start faster than it does.

/**
 * Returns the milliseconds from the import until a call is possible, and until the reply to the
 * first call.
 */
export async function start(subject) {
  const begin = performance.now();
  const { client } = await subject();
  const lock = client().lock(`bench:start:${process.pid}:${Date.now()}`);
  const ready = performance.now() - begin;
  if (!(await lock.tryAcquire())) throw new Error("the lock was not free");
  return { ready, first: performance.now() - begin };
}
