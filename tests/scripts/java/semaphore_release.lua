-- What Redisson's `RSemaphore` does to give permits back, in our words.
--
-- KEYS  1 the semaphore's name, 2 its channel
-- ARGV  1 how many   2 command to publish with   3 `exists`: only if the semaphore is there
-- Reply nil; with ARGV 3: 1, or 0 when it is not there
if ARGV[3] == 'exists' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local left = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], left)
return ARGV[3] == 'exists' and 1 or false
