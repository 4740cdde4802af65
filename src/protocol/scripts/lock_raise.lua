-- Stores a larger token in a hold that is one node of a majority, so that a majority agrees on one.
--
-- KEYS  1 latch of the owner, then for each lock: its name, its token key
-- ARGV  5 owner field   6 token   7 how long the token keys are kept in ms
-- Reply 1 the token that is stored now: this one, or a larger one that was there, and then nothing was changed
--      -1 late   -3 lost: not held, or not any more
--
-- May be sent twice: it only raises what is there, and only under the hold of its owner.
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
for i=3,#KEYS,2 do
  -- One without an end is a fenced lock's.
  if redis.call('PTTL',KEYS[i])==-1 then redis.call('SET',KEYS[i],token) else redis.call('SET',KEYS[i],token,'PX',ARGV[7]) end
end
redis.call('SET',KEYS[1],token,'KEEPTTL')
return out(1,token,0)
