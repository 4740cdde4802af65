-- Redisson's `drainPermits` of an `RSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name
-- ARGV  none
-- Reply how many there were, as text; 0 if there is no semaphore
local left = redis.call('GET', KEYS[1])
if not left then return 0 end
redis.call('SET', KEYS[1], 0)
return left
