-- What Redisson's fair lock does when a waiter gives up, in our words.
--
-- KEYS  1 queue, 2 timeouts
-- ARGV  1 holder   2 what is taken off the scores of those behind it in ms
-- Reply nil
local behind = false
for _, other in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if behind then redis.call('ZINCRBY', KEYS[2], -tonumber(ARGV[2]), other) end
  behind = behind or other == ARGV[1]
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('LREM', KEYS[1], 0, ARGV[1])
return false
