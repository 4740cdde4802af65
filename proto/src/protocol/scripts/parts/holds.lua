-- Holds in a sorted set: each hold is a member, and its score is the time by Redis' clock at which
-- its lease ends. A member of a semaphore begins with the number of permits that it holds; a member
-- of a permit-expirable semaphore is the id of one permit.
--
-- KEYS 2 number of available permits, 3 the set, 4 the channel
--
-- Returns the number of available permits; nil if there is no semaphore. Fails, before anything is
-- written, if the key does not hold a number.
local function available() local v=redis.call('GET',KEYS[2]) return v and v+0 or nil end
-- Gives permits back and publishes the new number, unless it is below 1: such a number wakes no
-- waiter and breaks Java's listener. Does not create a missing semaphore.
local function give(v,p)
  if v and p>0 then v=redis.call('INCRBY',KEYS[2],p) if v>0 then say(KEYS[4],v) end end
  return v
end
-- Returns how many permits these members hold. Most begin with one digit and `|`, which is faster
-- to parse than a number.
local function weight(members,weigh)
  if not weigh then return #members end
  local p=0
  for _,m in ipairs(members) do p=p+(m:byte(2)==124 and m:byte()-48 or tonumber(m:match('^%d+')) or 1) end
  return p
end
