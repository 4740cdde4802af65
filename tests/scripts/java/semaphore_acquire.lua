-- Redisson's acquisition of permits of an `RSemaphore`, re-implemented.
--
-- KEYS  1 the semaphore's name
-- ARGV  1 how many
-- Reply 1: taken; 0: too few
local left = redis.call('GET', KEYS[1])
if left and tonumber(left) >= tonumber(ARGV[1]) then
  redis.call('DECRBY', KEYS[1], ARGV[1])
  return 1
end
return 0
