-- with sweep, readers_ttl
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
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(tonumber(latch:sub(2)),'0',0) end
local mode=call('HGET',n,'mode')
-- In mode `write` the end of the hash is the writer's, and stays as it is.
local m=mode=='read' and call('HEXISTS',n,field)==1 and readers_ttl(n,ARGV[6],field)
local verdict=call('DEL',KEYS[3])
if call('HDEL',n,field)==0 then verdict=0
elseif m==0 or mode and call('HLEN',n)==1 then call('DEL',n) publish(KEYS[4],'0')
elseif m and m>0 then call('PEXPIRE',n,m) end
call('SET',KEYS[1],'x'..verdict,'PX',record_ttl())
return out(verdict,'0',0)
