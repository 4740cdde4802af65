-- with group
-- Returns the state of values of a group. Writes nothing, but is sent as a script that may write,
-- so that the primary executes it.
--
-- KEYS  1 the group's token key, 2 the group
-- ARGV  5 owner field to look for, or empty   6 tolerated error of Redisson's clocks in ms
--       7 and on: the values' fields
-- Reply 1 some are held, 0 all are free:
--       `<last token, 0 if none>,<largest hold count>,<1 if the owner holds all>,<the number
--         that is held>`, longest remaining (-2: all are free)
--
-- May be sent twice: it changes nothing.
local taken,count,mine,ms=0,0,0,0
for i=7,#ARGV do
  local f=ARGV[i]
  local h=call('HGET',group,f)
  local rest=h and remaining(call('HGET',group,f..':'..h..':expire_time'),h,tonumber(ARGV[6]))
  if rest then
    taken=taken+1
    ms=math.max(ms,rest)
    count=math.max(count,tonumber(call('HGET',group,f..':'..h..':lock_count') or nil) or 0)
    if h==ARGV[5] then mine=mine+1 end
  end
end
local value=(call('GET',KEYS[1]) or '0')..','..string.format('%.0f',count)..','..(mine==#ARGV-6 and 1 or 0)..','..taken
return out(taken>0 and 1 or 0,value,taken>0 and cap_to_group(ms) or -2)
