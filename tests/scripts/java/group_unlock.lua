-- Redisson's release of one entry of a hold of values of a group, re-implemented.
--
-- KEYS  1 the group, 2 its channel, 3 latch of this unlock
-- ARGV  1 holder   2 message   3 lease in ms   4 command to publish with
--       5 life of the latch in ms   6 clock of the client in ms   7 and on: the values' fields
-- Reply nil: not all were held, and the others are released; 0: entries are left; 1: released
local known = redis.call('GET', KEYS[3])
if known then return tonumber(known) end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call(ARGV[4], KEYS[2], ARGV[2])
  return false
end
local failed, all = false, true
for i = 7, #ARGV do
  local helper = ARGV[i] .. ':' .. ARGV[1]
  local at = redis.call('HGET', KEYS[1], helper .. ':expire_time')
  if at and tonumber(at) >= tonumber(ARGV[6]) then
    if redis.call('HINCRBY', KEYS[1], helper .. ':lock_count', -1) <= 0 then
      redis.call('HDEL', KEYS[1], helper .. ':expire_time', helper .. ':lock_count', ARGV[i])
    else
      redis.call('HSET', KEYS[1], helper .. ':expire_time', tonumber(ARGV[6]) + tonumber(ARGV[3]))
      all = false
    end
  else
    failed = true
  end
end
if failed then return false end
redis.call(ARGV[4], KEYS[2], ARGV[2])
if all then
  redis.call('SET', KEYS[3], 1, 'PX', ARGV[5])
  return 1
end
redis.call('SET', KEYS[3], 0, 'PX', ARGV[5])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 0
