-- Redisson's release of one entry of an `RLock`'s hold, re-implemented.
--
-- KEYS  1 the lock's name, 2 its channel, 3 latch of this unlock
-- ARGV  1 message   2 lease in ms   3 holder   4 command to publish with
--       5 life of the latch in ms
-- Reply nil: not the holder's; 0: entries are left; 1: released
local known = redis.call('GET', KEYS[3])
if known then return tonumber(known) end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return false end
local left = redis.call('HINCRBY', KEYS[1], ARGV[3], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[3], 0, 'PX', ARGV[5])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], 1, 'PX', ARGV[5])
return 1
