-- Redisson's `trySetCount` of an `RCountDownLatch`, re-implemented.
--
-- KEYS  1 the latch's name, 2 its channel
-- ARGV  1 message   2 count   3 command to publish with
-- Reply 1: set; 0: it exists
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call(ARGV[3], KEYS[2], ARGV[1])
return 1
