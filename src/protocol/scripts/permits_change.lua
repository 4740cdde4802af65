-- with once, holds, free, lease, raw
-- Changes how many permits a permit-expirable semaphore has, or what becomes of single ones.
--
-- KEYS  1 record of this request, 2 the semaphore's name, 3 the set of permits, 4 the channel
-- ARGV  5 window in ms   6 what to do   7, 8 a number each   9... permit ids, in hexadecimal digits
--         `add`: 7 more are available, fewer if negative; makes the semaphore
--         `set`: makes it have 7 in all      `new`: to 7, only if it is not there
--         `free`: gives these ids back       `lease`: lets these ids end after lease 7 (-1: never) and skew 8; may be sooner
--         `clear`: gives back whatever is held, by whoever
-- Reply 1 done, 0 there is one (`new`), not all were held (`free`, `lease`), nothing was held (`clear`); and those of
--       parts/once.lua. value: how many are available; for `free`, `lease` and `clear` for how many ids it was done
--
-- May be sent twice: the answer is recorded under the request id and repeated.
-- The end of the semaphore stays as it is, which Redisson takes away when it adds.
local op,p,v,ids=ARGV[6],tonumber(ARGV[7]),available(),raw(9)
local n=0
if op=='free' then n=free(ids,1)
elseif op=='lease' then
  local held={}
  for _,id in ipairs(ids) do if redis.call('ZSCORE',KEYS[3],id) then held[#held+1]=id end end
  n=#held
  set_ends(KEYS[3],ends(p>=0 and p or nil,tonumber(ARGV[8])),held)
elseif op=='clear' then
  n=redis.call('ZCARD',KEYS[3])
  redis.call('UNLINK',KEYS[3])
  give(v,n)
  return done(n>0 and 1 or 0,tostring(n))
else
  if op=='new' and v then return done(0,string.format('%.0f',v)) end
  if op=='set' and v then p=p-v-redis.call('ZCARD',KEYS[3]) end
  v=redis.call('INCRBY',KEYS[2],p)
  if p>0 and v>0 then say(KEYS[4],v) end
  return done(1,string.format('%.0f',v))
end
return done(n==#ids and 1 or 0,tostring(n))
