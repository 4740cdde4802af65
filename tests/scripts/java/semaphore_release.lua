-- Redisson's release of permits of an `RSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel
-- ARGV  1 how many   2 command to publish with   3 `exists`: only if the semaphore exists
-- Reply nil; with ARGV 3: 1, or 0 if it does not exist
if ARGV[3] == 'exists' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local left = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], left)
return ARGV[3] == 'exists' and 1 or false
