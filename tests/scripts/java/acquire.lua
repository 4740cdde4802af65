-- Redisson's acquisition of an `RLock`, re-implemented.
--
-- KEYS  1 the lock's name
-- ARGV  1 lease in ms   2 holder
-- Reply nil: acquired; else the remaining ms of the present hold (-1: no end)
local free = redis.call('EXISTS', KEYS[1]) == 0
if free or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
return redis.call('PTTL', KEYS[1])
