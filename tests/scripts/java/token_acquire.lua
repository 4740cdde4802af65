-- Redisson's acquisition of an `RFencedLock` with a token, re-implemented.
--
-- KEYS  1 the lock's name, 2 its token key
-- ARGV  1 lease in ms   2 holder
-- Reply -1 and the token: acquired; the remaining ms and -1: held by another
local free = redis.call('EXISTS', KEYS[1]) == 0
if free or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  local token = redis.call('INCR', KEYS[2])
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return {-1, token}
end
return {redis.call('PTTL', KEYS[1]), -1}
