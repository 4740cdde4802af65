-- Redisson's acquisition of permits of an `RPermitExpirableSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its permits, 3 its channel
-- ARGV  1 how many   2 when they end   3 the time, by the machine's clock
--       4 score of a permit without an end   5 command to publish with   6... ids
-- Reply `OK`: taken; `:` and when the next one ends; nil: none ends
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, ARGV[1])
if #over > 0 then
  redis.call('ZREM', KEYS[2], unpack(over))
  local left = redis.call('INCRBY', KEYS[1], #over)
  if left > 0 then redis.call(ARGV[5], KEYS[3], left) end
end
local left = redis.call('GET', KEYS[1])
if left and tonumber(left) >= tonumber(ARGV[1]) then
  redis.call('DECRBY', KEYS[1], ARGV[1])
  for i = 6, #ARGV do redis.call('ZADD', KEYS[2], ARGV[2], ARGV[i]) end
  local ms = redis.call('PTTL', KEYS[1])
  if ms > 0 then redis.call('PEXPIRE', KEYS[2], ms) end
  return 'OK'
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] and first[2] ~= ARGV[4] then return ':' .. first[2] end
return false
