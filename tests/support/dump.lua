-- Returns everything that is stored, atomically.
--
-- KEYS  none: reads all keys
-- ARGV  none
-- Reply: ms since 1970 now, and for each key: name, type, remaining ms, ms since 1970 at which it
--       expires (both -1: never), then its text, its elements, its fields and their values, or its
--       members and their scores
local content_of = {
  string = function(key) return {redis.call('GET', key)} end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
}
local all, t = {}, redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local ends = redis.call('PEXPIRETIME', key)
  local entry = {key, kind, ends < 0 and ends or math.max(0, ends - now), ends}
  for _, part in ipairs(content_of[kind](key)) do entry[#entry + 1] = part end
  all[#all + 1] = entry
end
return {now, all}
