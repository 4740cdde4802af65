-- Redisson's `addPermits` of an `RSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel
-- ARGV  1 how many more   2 command to publish with
-- Reply nil
local left = tonumber(redis.call('GET', KEYS[1]) or 0) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], left)
redis.call(ARGV[2], KEYS[2], left)
return false
