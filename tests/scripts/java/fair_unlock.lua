-- Redisson's release of one entry of a fair lock's hold, re-implemented.
--
-- KEYS  1 the lock's name, 2 queue, 3 timeouts, 4 channel, 5 latch of this unlock
-- ARGV  1 message   2 lease in ms   3 holder   4 the client's clock in ms
--       5 command to publish with   6 life of the latch in ms
-- Reply nil: not the holder's; 0: entries are left; 1: released, or the lock was free
local known = redis.call('GET', KEYS[5])
if known then return tonumber(known) end
local head = sweep(KEYS[2], KEYS[3], ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return false end
  if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('SET', KEYS[5], 0, 'PX', ARGV[6])
    return 0
  end
  redis.call('DEL', KEYS[1])
end
redis.call('SET', KEYS[5], 1, 'PX', ARGV[6])
if head then redis.call(ARGV[5], KEYS[4] .. ':' .. head, ARGV[1]) end
return 1
