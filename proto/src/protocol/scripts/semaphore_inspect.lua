-- with holds
-- Returns the state of a semaphore. Writes nothing, but is sent as a script that may write, so that
-- the primary executes it.
--
-- KEYS  1 token key, 2 the semaphore's name, 3 the set of holds
-- ARGV  5 owner field to look for, or empty   6 its number of permits
-- Reply 1 it exists, 0 it does not: `<last token, 0 if none>,<holds of ours>,<1 if the owner
--         holds>, <available>,<permits that ours hold>`, remaining of the owner's lease (-1: no
--         end, -2: not held). Permits of the 500 holds that end first are counted; permits of holds
--         that have ended count as available.
--
-- May be sent twice: it changes nothing.
local v,free,held=available() or 0,0,0
local all=redis.call('ZRANGE',KEYS[3],0,499,'WITHSCORES')
for i=1,#all,2 do
  local p=weight({all[i]},true)
  if tonumber(all[i+1])<=now then free=free+p else held=held+p end
end
local at=tonumber(redis.call('ZSCORE',KEYS[3],ARGV[6]..'|'..ARGV[5]))
local there=redis.call('EXISTS',KEYS[2])
return out(there,string.format('%s,%d,%d,%.0f,%.0f',redis.call('GET',KEYS[1]) or '0',
  redis.call('ZCARD',KEYS[3])-redis.call('ZCOUNT',KEYS[3],0,now),at and 1 or 0,v+free*there,held),
  not at and -2 or at==922337203685477 and -1 or math.max(at-now,0))
