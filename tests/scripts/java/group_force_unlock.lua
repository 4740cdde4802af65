-- Redisson's forced release of values of a group, re-implemented: it fails at the first free value.
--
-- KEYS  1 the group, 2 its channel
-- ARGV  1 message   2 command to publish with   3 and on: the values' fields
-- Reply how many were held
local freed = 0
for i = 3, #ARGV do
  local owner = redis.call('HGET', KEYS[1], ARGV[i])
  local helper = ARGV[i] .. ':' .. owner
  redis.call('HDEL', KEYS[1], ARGV[i], helper .. ':expire_time', helper .. ':lock_count')
  freed = freed + 1
end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return freed
