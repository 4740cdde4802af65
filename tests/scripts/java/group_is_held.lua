-- Redisson's check whether a thread holds all values of a set, re-implemented: it skips the first
-- value.
--
-- KEYS  1 the group
-- ARGV  1 clock of the client in ms   2 holder   3 and on: the values' fields
-- Reply 1 or 0
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for i = 4, #ARGV do
  local at = redis.call('HGET', KEYS[1], ARGV[i] .. ':' .. ARGV[2] .. ':expire_time')
  if not at or tonumber(at) < tonumber(ARGV[1]) then return 0 end
end
return 1
