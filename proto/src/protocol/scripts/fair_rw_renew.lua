-- with fair_rw
-- Extends a hold of a fair read-write lock.
--
-- KEYS  1 latch of the owner, 2 to 8 as in parts/fair_rw.lua
-- ARGV  5 member   6 lease in ms   7 token of the grant
-- Reply 1 extended: token, remaining   -1 late
--      -3 lost: `1` if a steal was granted after this grant, else `0`; nothing was extended
--
-- May be sent twice: it compares member and token, and only extends (C7). Its first write works
-- when memory is full (C5).
local m,lease=ARGV[5],tonumber(ARGV[6])
if is_late() then return out(-1,'0',0) end
local e=score(HOLDERS,m)
if call('GET',KEYS[1])~=ARGV[7] or not e or e<=now then return out(-3,is_stolen(ARGV[7]),0) end
call('PEXPIRE',KEYS[1],math.max(record_ttl(lease),call('PTTL',KEYS[1])))
if e<now+lease then e=now+lease set_score(HOLDERS,e,m,lease+1000) end
register(e,math.floor(lease/3))
return out(1,ARGV[7],e-now)
