-- with store_token
-- Stores a larger token in a hold that is one node of a majority, so that a majority agrees on one.
--
-- KEYS  1 latch of the owner, then for each lock: its name, its token key
-- ARGV  5 owner field   6 token   7 how long the token keys are kept in ms
-- Reply 1 the token that is stored now: this one, or a larger one that was stored before; then
--         nothing was changed
--      -1 late   -3 lost: not held, or not any more
--      -9 from the future: newest accepted token; nothing was changed
--
-- May be sent twice: it only raises the stored token, and only under the hold of its owner. A token
-- that is already stored may be further ahead: the clock may have been set back.
local field,token=ARGV[5],ARGV[6]
if late() then return out(-1,'0',0) end
local latch=redis.call('GET',KEYS[1])
if not latch or latch:sub(1,1)=='x' then return out(-3,'0',0) end
local last=tonumber(latch)
for i=2,#KEYS,2 do
  if redis.call('HEXISTS',KEYS[i],field)==0 then return out(-3,'0',0) end
  last=math.max(last,tonumber(redis.call('GET',KEYS[i+1]) or '0'))
end
if last>tonumber(token) then return out(1,string.format('%.0f',last),0) end
-- The same bound as in guard_write: with a token beyond it the next holders could not write to any
-- guarded key.
local newest=t[1]*1000000+t[2]+60000000
if tonumber(token)>math.max(last,newest) then return out(-9,string.format('%.0f',newest),0) end
for i=3,#KEYS,2 do store_token(KEYS[i],token,ARGV[7]) end
redis.call('SET',KEYS[1],token,'KEEPTTL')
return out(1,token,0)
