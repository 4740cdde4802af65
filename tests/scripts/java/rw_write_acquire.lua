-- Redisson's acquisition of a write lock, re-implemented.
--
-- KEYS  1 the lock's name
-- ARGV  1 lease in ms   2 field of the holder's write hold
-- Reply nil: acquired; else the remaining ms of the hold that excludes it
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  -- The lease is added to the remaining time.
  redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[1])
  return false
end
return redis.call('PTTL', KEYS[1])
