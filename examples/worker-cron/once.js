/**
 * Calls `work` unless another process runs it now, or has finished it for this due time. Returns
 * whether it has called `work`.
 */
export async function once(locks, name, due, work) {
  const lease = await locks.lock(name).tryAcquire();
  if (lease === null) return false;
  try {
    const key = `{${name}}:done`;
    const last = await lease.eval("return redis.call('GET', KEYS[1])", [key], [], { once: false });
    if (last !== null && Number(last) >= due.getTime()) return false;
    await work(lease);
    // Only a process that still holds the lock records the due time.
    await lease.eval("redis.call('SET', KEYS[1], ARGV[1])", [key], [`${due.getTime()}`]);
    return true;
  } finally {
    await lease.release();
  }
}
