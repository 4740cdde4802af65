-- Returns the queue of a fair lock. Writes nothing, but is sent as a script that may write, so that
-- the primary executes it.
--
-- KEYS  1 the lock's name, 2 queue, 3 timeouts, 4 beats
-- ARGV  5 owner field to look for, or empty   6 number of waiters to return, from the head on
-- Reply 1 locked, 0 free: `<length>,<place from 1, 0: not queued>`, then for each of these waiters
--         `,<1: ours, 0: Redisson's>,<ms>`: how long it counts as alive without a further sign;
--         remaining of the hold (-1: no end, -2: free)
--
-- May be sent twice: it changes nothing.
local value=redis.call('LLEN',KEYS[2])..','..((redis.call('LPOS',KEYS[2],ARGV[5]) or -1)+1)
for _,h in ipairs(redis.call('LRANGE',KEYS[2],0,ARGV[6]-1)) do
  local ours=h:sub(15,15)=='8' and 1 or 0
  local left=(tonumber(redis.call('ZSCORE',KEYS[3+ours],h)) or 0)-now
  value=value..','..ours..','..string.format('%.0f',math.max(0,left))
end
local ms=redis.call('PTTL',KEYS[1])
return out(ms==-2 and 0 or 1,value,ms)
