-- Holds in a sorted set: each a member, its score the time by Redis' clock at which its lease ends. A semaphore's members begin
-- with the number of permits that they hold; a permit's are its id, and one permit.
--
-- KEYS 2 how many permits are available, 3 the set, 4 the channel
--
-- What is available; nil when nobody has set it. An error for what is no number, before anything is written.
local function available() local v=redis.call('GET',KEYS[2]) return v and v+0 or nil end
-- Gives permits back and tells how many there are then; but less than one wakes nobody, and breaks Java's listener. A semaphore
-- that is not there is not made by that.
local function give(v,p)
  if v and p>0 then v=redis.call('INCRBY',KEYS[2],p) if v>0 then say(KEYS[4],v) end end
  return v
end
-- How many permits these members are. Most begin with one digit and `|`, which is faster to read than a number is.
local function weight(members,weigh)
  if not weigh then return #members end
  local p=0
  for _,m in ipairs(members) do p=p+(m:byte(2)==124 and m:byte()-48 or tonumber(m:match('^%d+')) or 1) end
  return p
end
