-- Lets time pass for a fair lock: ages all stored times.
--
-- KEYS  1 arrivals, 2 watch
-- ARGV  1 by how much in ms
-- Reply the keys that this removes: all whose expiry is not after now
local ms = tonumber(ARGV[1])
local gone = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('TYPE', key).ok == 'zset' then
    local less = key == KEYS[1] and ms * 1000 or ms
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, string.format('%.0f', -less), member)
    end
  elseif key == KEYS[2] then
    local since, sent, rest = redis.call('GET', key):match('^(%d+) (%d+) (.*)$')
    since, sent = math.max(0, since - ms), math.max(0, sent - ms)
    redis.call('SET', key, since .. ' ' .. sent .. ' ' .. rest, 'KEEPTTL')
  end
  local ends = redis.call('PEXPIRETIME', key)
  if ends >= 0 then redis.call('PEXPIREAT', key, ends - ms) end
  if redis.call('EXISTS', key) == 0 then gone[#gone + 1] = key end
end
return gone
