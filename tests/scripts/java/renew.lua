-- Redisson's renewal of the holds of several locks, re-implemented.
--
-- KEYS  names of locks
-- ARGV  1 lease in ms   2 and on: the holder of each
-- Reply for each lock 1: renewed, or 0: not held
local renewed = {}
for i, name in ipairs(KEYS) do
  renewed[i] = 0
  if redis.call('HEXISTS', name, ARGV[i + 1]) == 1 then
    redis.call('PEXPIRE', name, ARGV[1])
    renewed[i] = 1
  end
end
return renewed
