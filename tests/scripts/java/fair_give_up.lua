-- Redisson's removal of a fair lock's waiter that gives up, re-implemented.
--
-- KEYS  1 queue, 2 timeouts
-- ARGV  1 holder   2 reduction of the scores behind it in ms
-- Reply nil
local behind = false
for _, other in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if behind then redis.call('ZINCRBY', KEYS[2], -tonumber(ARGV[2]), other) end
  behind = behind or other == ARGV[1]
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('LREM', KEYS[1], 0, ARGV[1])
return false
