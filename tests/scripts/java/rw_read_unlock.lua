-- Redisson's release of one entry of a read lock's hold, re-implemented.
--
-- KEYS  1 the lock's name, 2 its channel, 3 prefix of the holder's timeout keys,
--       4 prefix of all readers', 5 latch of this unlock
-- ARGV  1 message   2 holder   3 command to publish with   4 life of the latch in ms
-- Reply nil: not the holder's; 0: a hold is left; 1: the lock is free
local known = redis.call('GET', KEYS[5])
if known then return tonumber(known) end
local function told(verdict)
  redis.call('SET', KEYS[5], verdict, 'PX', ARGV[4])
  return verdict
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call(ARGV[3], KEYS[2], ARGV[1])
  told(1)
  return false
end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return false end
local left = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
if left == 0 then redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('DEL', KEYS[3] .. ':' .. left + 1)
if redis.call('HLEN', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local count = tonumber(redis.call('HGET', KEYS[1], field))
    for entry = count or 0, 1, -1 do
      longest = math.max(longest, redis.call('PTTL', KEYS[4] .. ':' .. field .. ':rwlock_timeout:' .. entry))
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', KEYS[1], longest)
    return told(0)
  end
  if mode == 'write' then return told(0) end
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[3], KEYS[2], ARGV[1])
return told(1)
