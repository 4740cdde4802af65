-- Redisson's acquisition of the values of a `getMultiLock(group, values)`, re-implemented.
--
-- KEYS  1 the group
-- ARGV  1 lease in ms   2 clock of the client in ms   3 holder   4 and on: the values' fields
-- Reply nil: acquired; else the remaining ms of the longest hold that excludes it
local had = redis.call('EXISTS', KEYS[1]) == 1
local ends = 0
for i = 4, #ARGV do
  local owner = redis.call('HGET', KEYS[1], ARGV[i])
  if owner and owner ~= ARGV[3] then
    local at = redis.call('HGET', KEYS[1], ARGV[i] .. ':' .. owner .. ':expire_time')
    if at and tonumber(at) > tonumber(ARGV[2]) then ends = math.max(ends, tonumber(at)) end
  end
end
if ends > 0 then return ends - tonumber(ARGV[2]) end
for i = 4, #ARGV do
  local helper = ARGV[i] .. ':' .. ARGV[3]
  local at = tonumber(redis.call('HGET', KEYS[1], helper .. ':expire_time') or '0')
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[3])
  redis.call('HSET', KEYS[1], helper .. ':expire_time', math.max(at, tonumber(ARGV[2]) + tonumber(ARGV[1])))
  redis.call('HINCRBY', KEYS[1], helper .. ':lock_count', 1)
end
local left = redis.call('PTTL', KEYS[1])
-- Not in the last millisecond of the group, in which its PTTL is 0: a hold that is acquired then is
-- gone in the next.
if not had or left > 0 and left < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return false
