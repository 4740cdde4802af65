-- Redisson's release of one entry of a write lock's hold, re-implemented.
--
-- KEYS  1 the lock's name, 2 its channel, 3 latch of this unlock
-- ARGV  1 message   2 lease in ms   3 field of the holder's write hold   4 command to publish with
--       5 life of the latch in ms
-- Reply nil: not the holder's; 0: entries are left; 1: released
local known = redis.call('GET', KEYS[3])
if known then return tonumber(known) end
local function told(verdict)
  redis.call('SET', KEYS[3], verdict, 'PX', ARGV[5])
  return verdict
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call(ARGV[4], KEYS[2], ARGV[1])
  told(1)
  return false
end
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return false end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return told(0)
end
redis.call('HDEL', KEYS[1], ARGV[3])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[4], KEYS[2], ARGV[1])
else
  -- A reader is left: a downgrade, which is not published.
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
return told(1)
