-- Redisson's acquisition of a read lock, re-implemented.
--
-- KEYS  1 the lock's name, 2 prefix of the holder's timeout keys
-- ARGV  1 lease in ms   2 holder   3 field of the holder's write hold
-- Reply nil: acquired; else the remaining ms of the hold that excludes it
local mode = redis.call('HGET', KEYS[1], 'mode')
local entry
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[2], 1)
  entry = 1
elseif mode == 'read' or mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1 then
  entry = redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
else
  return redis.call('PTTL', KEYS[1])
end
redis.call('SET', KEYS[2] .. ':' .. entry, 1, 'PX', ARGV[1])
local left = mode and redis.call('PTTL', KEYS[1]) or 0
redis.call('PEXPIRE', KEYS[1], math.max(left, ARGV[1]))
return false
