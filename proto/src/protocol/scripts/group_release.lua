-- Ends a hold of values of a group, or an acquisition that has none (abandon), so that no copy of
-- it can be granted any more.
--
-- KEYS  1 latch of the owner, 2 the group, 3 its channel
-- ARGV  5 owner field   6 and on: the values' fields
-- Reply 1 released: all were held   0 not all were held, or not any more
--
-- May be sent twice: the verdict is recorded in the latch and repeated. A value that another owner
-- has acquired since is left alone. The first write is a deletion, so it works when memory is full
-- (C5). Not rejected when late: the bound only sizes the tombstone (C8).
local latch=redis.call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(tonumber(latch:sub(2)),'0',0) end
local held=0
for i=6,#ARGV do
  local f=ARGV[i]
  if redis.call('HGET',KEYS[2],f)==ARGV[5] then held=held+1 redis.call('HDEL',KEYS[2],f) end
  f=f..':'..ARGV[5]
  redis.call('HDEL',KEYS[2],f..':expire_time',f..':lock_count')
end
if held>0 then say(KEYS[3],'0') end
local verdict=held==#ARGV-5 and 1 or 0
redis.call('SET',KEYS[1],'x'..verdict,'PX',life())
return out(verdict,'0',0)
