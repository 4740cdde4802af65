-- Redisson's renewal of a hold of values of a group, re-implemented.
--
-- KEYS  1 the group
-- ARGV  1 lease in ms   2 clock of the client in ms   3 holder   4 and on: the values' fields
-- Reply 1: renewed; 0: not all are held, and those before the first that is not are renewed
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for i = 4, #ARGV do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[3] then return 0 end
  local helper = ARGV[i] .. ':' .. ARGV[3] .. ':expire_time'
  local at = tonumber(redis.call('HGET', KEYS[1], helper) or '0')
  redis.call('HSET', KEYS[1], helper, math.max(at, tonumber(ARGV[2]) + tonumber(ARGV[1])))
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
