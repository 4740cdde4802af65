// What a program waits for before it holds its first lock. Nothing is imported here that a library
// might want as well: who finds it loaded already would seem to be quicker than it is.

/**
 * Milliseconds from the import until a call can be made, and until the first one has been answered.
 */
export async function start(subject) {
  const begin = performance.now();
  const { client } = await subject();
  const lock = client().lock(`bench:start:${process.pid}:${Date.now()}`);
  const ready = performance.now() - begin;
  if (!(await lock.tryAcquire())) throw new Error("the lock was not free");
  return { ready, first: performance.now() - begin };
}
