-- Redisson's check whether any value of a set is locked, re-implemented.
--
-- KEYS  1 the group
-- ARGV  1 clock of the client in ms   2 and on: the values' fields
-- Reply 1 or 0
for i = 2, #ARGV do
  local owner = redis.call('HGET', KEYS[1], ARGV[i])
  if owner then
    local at = redis.call('HGET', KEYS[1], ARGV[i] .. ':' .. owner .. ':expire_time')
    if at and tonumber(at) >= tonumber(ARGV[1]) then return 1 end
  end
end
return 0
