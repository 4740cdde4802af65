-- Redisson's `countDown` of an `RCountDownLatch`, re-implemented.
--
-- KEYS  1 the latch's name, 2 its channel
-- ARGV  1 message   2 command to publish with
-- Reply nil
local left = redis.call('DECR', KEYS[1])
if left <= 0 then redis.call('DEL', KEYS[1]) end
if left == 0 then redis.call(ARGV[2], KEYS[2], ARGV[1]) end
return false
