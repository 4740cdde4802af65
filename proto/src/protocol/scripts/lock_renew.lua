-- Extends a hold.
--
-- KEYS  1 latch of the owner, then the names of its locks
-- ARGV  5 owner field   6 lease in ms   7 token of the grant
-- Reply 1 extended: token, shortest remaining   -1 late   -3 lost: nothing was extended
--
-- May be sent twice: it compares owner and token, and only extends (C7). Its first write works when
-- memory is full (C5).
local field,lease=ARGV[5],tonumber(ARGV[6])
if late() then return out(-1,'0',0) end
if redis.call('GET',KEYS[1])~=ARGV[7] then return out(-3,'0',0) end
for i=2,#KEYS do if redis.call('HEXISTS',KEYS[i],field)==0 then return out(-3,'0',0) end end
local ms
for i=2,#KEYS do longer(KEYS[i],lease) local left=redis.call('PTTL',KEYS[i]) if not ms or left<ms then ms=left end end
longer(KEYS[1],life(lease))
return out(1,ARGV[7],ms)
