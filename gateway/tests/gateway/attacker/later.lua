-- Lets time pass for everything that is stored: each time in Redis becomes earlier, as if the clock
-- had advanced.
--
-- KEYS  none: all keys
-- ARGV  1 the time that passes, in ms
-- Reply: the number of keys that have expired
local ms, expired = tonumber(ARGV[1]), 0
local function earlier(number, by) return string.format('%.0f', number - by) end

-- A time of 0 is unknown, and stays so.
local function known(time) return time == '0' and time or earlier(time, ms) end

-- A fencing token has 16 digits: the clock in microseconds. The record of a fair lock's head begins
-- with two times in milliseconds.
local function text(key)
  local value = redis.call('GET', key)
  local digits, rest = value:match('^(%d+)(.*)$')
  if digits and #digits == 16 then return earlier(digits, ms * 1000) .. rest end
  if key:sub(1, 3) == 'el:' and key:sub(-6) == ':watch' then
    local since, published, more = value:match('^(%d+) (%d+)( .*)$')
    return known(since) .. ' ' .. known(published) .. more
  end
  return value
end

local change = {
  string = function(key) redis.call('SET', key, text(key), 'KEEPTTL') end,
  hash = function(key)
    local fields = redis.call('HGETALL', key)
    for i = 1, #fields, 2 do
      if fields[i]:sub(-12) == ':expire_time' then
        redis.call('HSET', key, fields[i], earlier(fields[i + 1], ms))
      end
      -- The tokens and tickets of a fair read-write lock.
      if key:sub(-9) == ':frw:last' and #fields[i + 1] == 16 then
        redis.call('HSET', key, fields[i], earlier(fields[i + 1], ms * 1000))
      end
    end
  end,
  zset = function(key)
    -- The scores of these sets are an order in microseconds, or none, which does not change.
    for _, name in ipairs({':seat', ':frw:queue', ':frw:writers', ':frw:names'}) do
      if key:sub(1, 3) == 'el:' and key:sub(-#name) == name then return end
    end
    local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #members, 2 do redis.call('ZADD', key, earlier(members[i + 1], ms), members[i]) end
  end,
  list = function() end,
}

for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= ms then
    redis.call('DEL', key)
    expired = expired + 1
  else
    change[redis.call('TYPE', key).ok](key)
    if left > ms then redis.call('PEXPIRE', key, left - ms) end
  end
end
return expired
