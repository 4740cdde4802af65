-- Redisson's `trySetPermits` of both kinds of semaphore, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel
-- ARGV  1 how many permits   2 command to publish with   3 how long it lasts in ms, or nothing
-- Reply 1: set; 0: it exists
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[3] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[1]) end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
