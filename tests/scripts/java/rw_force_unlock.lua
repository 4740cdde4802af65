-- Redisson's forced release of a read or write lock, re-implemented.
--
-- KEYS  1 the lock's name, 2 its channel
-- ARGV  1 message   2 command to publish with   3 the side: `read` or `write`
-- Reply 1: it was held on that side; 0: it was not
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[3] then return 0 end
redis.call('DEL', KEYS[1])
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
