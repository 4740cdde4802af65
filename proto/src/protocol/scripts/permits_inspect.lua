-- with holds, raw
-- Returns the state of a permit-expirable semaphore. Writes nothing, but is sent as a script that
-- may write, so that the primary executes it.
--
-- KEYS  1 token key, 2 the semaphore's name, 3 the set of permits
-- ARGV  5 skew in ms   6... permit ids to look for, in hexadecimal digits
-- Reply 1 it exists, 0 it does not: `<last token, 0 if none>,<number of held permits>,<1 if all of
--         the ids are held>,<available>,<permits in all>`, remaining of the id that ends first (-1:
--         no end, -2: one is not held, or none was named). Permits that have ended count as
--         available.
--
-- May be sent twice: it changes nothing.
local v,ids,skew=available(),raw(6),tonumber(ARGV[5])
local all=redis.call('ZCARD',KEYS[3])
local over=redis.call('ZCOUNT',KEYS[3],0,now-skew)
local first
for _,id in ipairs(ids) do
  local at=tonumber(redis.call('ZSCORE',KEYS[3],id))
  if not at then first=nil break end
  first=math.min(first or at,at)
end
return out(v and 1 or 0,string.format('%s,%d,%d,%.0f,%.0f',redis.call('GET',KEYS[1]) or '0',
  all-over,first and 1 or 0,v and v+over or 0,v and v+all or 0),
  not first and -2 or first==922337203685477 and -1 or math.max(first-skew-now,0))
