-- Redisson's release of one permit of an `RPermitExpirableSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel, 3 its permits
-- ARGV  1 id   2 `1`   3 the time, by the machine's clock   4 command to publish with
-- Reply 1: given back; 0: was not held, or had ended
local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
if redis.call('ZREM', KEYS[3], ARGV[1]) == 0 then return 0 end
local left = redis.call('INCRBY', KEYS[1], ARGV[2])
redis.call(ARGV[4], KEYS[2], left)
return tonumber(ends) > tonumber(ARGV[3]) and 1 or 0
