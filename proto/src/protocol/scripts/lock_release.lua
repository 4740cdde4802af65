-- Ends a hold, or an acquisition that has none (abandon), so that no copy of it can be granted any
-- more.
--
-- KEYS  1 latch of the owner, then for each lock: its name, its channel
-- ARGV  5 owner field
-- Reply 1 released: all were held   0 was not held, or not any more
--
-- May be sent twice: the verdict is recorded in the latch and repeated. The first write is a
-- deletion, so it works when memory is full (C5). Not rejected when late: the bound only sizes the
-- tombstone (C8).
local field=ARGV[5]
local latch=redis.call('GET',KEYS[1])
-- C3: a last try may have written this tombstone before the newest request without a bound was
-- sent.
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(tonumber(latch:sub(2)),'0',0) end
local held=0
for i=2,#KEYS,2 do
  -- Only the field: a Java reader may have added its own, since Redisson's kinds do not exclude
  -- each other.
  if redis.call('HDEL',KEYS[i],field)==1 then held=held+1 say(KEYS[i+1],'0') end
end
if held==0 then redis.call('DEL',KEYS[1]) end
local verdict=held*2+1==#KEYS and 1 or 0
redis.call('SET',KEYS[1],'x'..verdict,'PX',life())
return out(verdict,'0',0)
