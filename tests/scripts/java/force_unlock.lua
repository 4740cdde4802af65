-- Redisson's forced release of an `RLock`, re-implemented.
--
-- KEYS  1 the lock's name, 2 its channel
-- ARGV  1 message   2 command to publish with
-- Reply 1: it was held; 0: it was not
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
