-- with sweep, alive
-- Ends a read hold, or an acquisition that has none (abandon), so that no copy of it can be granted
-- any more.
--
-- KEYS  1 latch of the owner, 2 the lock's name, 3 timeout key of this hold, 4 channel
-- ARGV  5 owner field   6 how the timeout keys of all readers begin
-- Reply 1 released: it was held   0 was not held, or not any more
--
-- May be sent twice: the verdict is recorded in the latch and repeated. The first write is a
-- deletion, so it works when memory is full (C5). Not rejected when late: the bound only sizes the
-- tombstone (C8).
local n,field=KEYS[2],ARGV[5]
local latch=redis.call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(tonumber(latch:sub(2)),'0',0) end
local mode=redis.call('HGET',n,'mode')
-- In mode `write` the end of the hash is the writer's, and stays as it is.
local m=mode=='read' and redis.call('HEXISTS',n,field)==1 and alive(n,ARGV[6],field)
local verdict=redis.call('DEL',KEYS[3])
if redis.call('HDEL',n,field)==0 then verdict=0
elseif m==0 or mode and redis.call('HLEN',n)==1 then redis.call('DEL',n) say(KEYS[4],'0')
elseif m and m>0 then redis.call('PEXPIRE',n,m) end
redis.call('SET',KEYS[1],'x'..verdict,'PX',life())
return out(verdict,'0',0)
