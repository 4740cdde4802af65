-- Redisson's queries and lease updates of an `RPermitExpirableSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its permits, 3 its channel
-- ARGV  1 the time, by the machine's clock   2 command to publish with
--       3 `available`, `total`, `acquired`, `lease` or `update`   4 id   5 when it is to end
--       6 score of a permit without an end
-- Reply the number; for `lease` ms, -1 when it never ends, 0 when it is not held;
--       for `update` 1, or 0 when it is not held
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[1])
if #over > 0 then
  redis.call('ZREM', KEYS[2], unpack(over))
  local left = redis.call('INCRBY', KEYS[1], #over)
  if left > 0 then redis.call(ARGV[2], KEYS[3], left) end
  if ARGV[3] == 'available' then return left end
end
local held = redis.call('ZCARD', KEYS[2])
local left = redis.call('GET', KEYS[1])
if ARGV[3] == 'available' then return left or 0 end
if ARGV[3] == 'total' then return left and tonumber(left) + held or 0 end
if ARGV[3] == 'acquired' then return held end
local ends = redis.call('ZSCORE', KEYS[2], ARGV[4])
if not ends then return 0 end
if ARGV[3] == 'update' then
  redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
  return 1
end
return ends == ARGV[6] and -1 or tonumber(ends) - tonumber(ARGV[1])
