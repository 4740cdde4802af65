-- Redisson's change of the number of permits of an `RPermitExpirableSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name, 2 its channel, 3 its permits
-- ARGV  1 how many   2 command to publish with   3 `all` or `more`
-- Reply nil
local left = redis.call('GET', KEYS[1])
if ARGV[3] == 'more' then
  redis.call('SET', KEYS[1], tonumber(left or 0) + tonumber(ARGV[1]))
  if tonumber(ARGV[1]) > 0 then redis.call(ARGV[2], KEYS[2], ARGV[1]) end
  return false
end
if not left then
  redis.call('SET', KEYS[1], ARGV[1])
else
  local most = tonumber(left) + redis.call('ZCARD', KEYS[3])
  if most == tonumber(ARGV[1]) then return false end
  redis.call('INCRBY', KEYS[1], tonumber(ARGV[1]) - most)
end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return false
