-- Redisson's deletion of an `RCountDownLatch`, re-implemented.
--
-- KEYS  1 the latch's name, 2 its channel
-- ARGV  1 message   2 command to publish with
-- Reply 1: deleted; 0: there was none
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
