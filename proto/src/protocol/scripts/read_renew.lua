-- with risen
-- Extends a read hold.
--
-- KEYS  1 latch of the owner, 2 the lock's name, 3 timeout key of this hold, 4 epoch
-- ARGV  5 owner field   6 lease in ms   7 token of the grant, or a newer one that Redis returned
--         since
-- Reply 1 extended: the current token, remaining   -1 late   -3 lost: nothing was extended
--
-- May be sent twice: it compares owner and token, and only extends (C7); it never shortens the time
-- of the write side or of another reader. The token has risen if a write hold around this read has
-- ended (downgrade); an older token still belongs to this hold, so a renewal that was sent before
-- does not report a loss. If the release of that write did not know of this hold, the renewal
-- raises the latch to the token (parts/risen.lua). Its first write works when memory is full (C5).
local n,tk,lease=KEYS[2],KEYS[3],tonumber(ARGV[6])
if late() then return out(-1,'0',0) end
local latch=redis.call('GET',KEYS[1])
if not tonumber(latch) or redis.call('HEXISTS',n,ARGV[5])==0 or redis.call('EXISTS',tk)==0 then return out(-3,'0',0) end
local token=risen(latch,KEYS[4])
if tonumber(token)<tonumber(ARGV[7]) then return out(-3,'0',0) end
raise(latch,token,lease)
longer(tk,lease)
local left=redis.call('PTTL',tk)
longer(n,left) longer(KEYS[1],life(lease))
return out(1,token,left)
