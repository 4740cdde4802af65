-- Returns the state of one side of a read-write lock. Writes nothing, but is sent as a script that
-- may write, so that the primary executes it.
--
-- KEYS  1 the lock's name, 2 its token key, 3 timeout key of the owner's read hold, to look for one
-- ARGV  5 field to look for, or empty   6 the side: `read` or `write`
-- Reply 1 locked, 0 free: `<last token, 0 if none>,<holds of this side>,<1 if the owner holds it>`,
--         remaining (-1: no end, -2: free). In a hash of more than 1,000 fields each holder counts
--         as one hold, whatever its hold count.
--
-- May be sent twice: it changes nothing.
local mode,size,w=redis.call('HGET',KEYS[1],'mode'),redis.call('HLEN',KEYS[1]),ARGV[6]=='write'
local count=0
if mode and size<=1000 then
  local h=redis.call('HGETALL',KEYS[1])
  for i=1,#h,2 do
    if h[i]~='mode' and (h[i]:sub(-6)==':write')==w then count=count+(tonumber(h[i+1]) or 0) end
  end
elseif mode then
  local writers=mode=='write' and 1 or 0
  count=w and writers or size-1-writers
end
local locked=mode==ARGV[6] or not w and mode=='write' and size>2
local mine=ARGV[5]~='' and redis.call('HEXISTS',KEYS[1],ARGV[5]) or 0
if KEYS[3] and redis.call('EXISTS',KEYS[3])==0 then mine=0 end
return out(locked and 1 or 0,(redis.call('GET',KEYS[2]) or '0')..','..string.format('%.0f',count)..','..mine,locked and redis.call('PTTL',KEYS[1]) or -2)
