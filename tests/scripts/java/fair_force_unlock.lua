-- Redisson's forced release of a fair lock, re-implemented.
--
-- KEYS  1 the lock's name, 2 queue, 3 timeouts, 4 channel
-- ARGV  1 message   2 the client's clock in ms   3 command to publish with
-- Reply 1: it was held; 0: it was not
local head = sweep(KEYS[2], KEYS[3], ARGV[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
if head then redis.call(ARGV[3], KEYS[4] .. ':' .. head, ARGV[1]) end
return 1
