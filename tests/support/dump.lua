-- Everything that is stored, in one atomic step.
--
-- KEYS  none: all there are
-- ARGV  none
-- Reply for each key: name, type, remaining ms, ms since 1970 at which it ends (both -1: never), then its text, or its
--       fields and their values
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local entry = {key, kind, redis.call('PTTL', key), redis.call('PEXPIRETIME', key)}
  local content = kind == 'hash' and redis.call('HGETALL', key) or {redis.call('GET', key)}
  for _, part in ipairs(content) do entry[#entry + 1] = part end
  all[#all + 1] = entry
end
return all
