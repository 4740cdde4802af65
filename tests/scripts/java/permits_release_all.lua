-- Redisson's release of several permits of an `RPermitExpirableSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel, 3 its permits
-- ARGV  1 how many   2 the time, by the machine's clock   3 command to publish with   4... ids
-- Reply how many; 0, without any change, if one is not held or has ended
for i = 4, #ARGV do
  local ends = redis.call('ZSCORE', KEYS[3], ARGV[i])
  if not ends or tonumber(ends) <= tonumber(ARGV[2]) then return 0 end
end
local over = redis.call('ZRANGEBYSCORE', KEYS[3], 0, ARGV[2])
if #over > 0 then
  redis.call('ZREM', KEYS[3], unpack(over))
  local left = redis.call('INCRBY', KEYS[1], #over)
  if left > 0 then redis.call(ARGV[3], KEYS[2], left) end
end
local given = redis.call('ZREM', KEYS[3], unpack(ARGV, 4))
redis.call('INCRBY', KEYS[1], given)
redis.call(ARGV[3], KEYS[2], given)
return given
