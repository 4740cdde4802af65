-- Lets time pass for a fair read-write lock.
--
-- KEYS  the sorted sets whose scores are times
-- ARGV  1 by how much in ms, negative to postpone the ends
--       2 whether the expiries of all keys come nearer too: 1 or 0
-- Reply the keys that this removes: all whose expiry is not after now
local gone = {}
for _, key in ipairs(KEYS) do
  for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    redis.call('ZINCRBY', key, -ARGV[1], member)
  end
end
if ARGV[2] == '1' then
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local ends = redis.call('PEXPIRETIME', key)
    if ends >= 0 then redis.call('PEXPIREAT', key, ends - ARGV[1]) end
    if redis.call('EXISTS', key) == 0 then gone[#gone + 1] = key end
  end
end
return gone
