-- Returns the state of a lock. Writes nothing, but is sent as a script that may write, so that the
-- primary executes it.
--
-- KEYS  1 the lock's name, 2 its token key
-- ARGV  5 owner field to look for, or empty
-- Reply 1 locked, 0 free: `<last token, 0 if none>,<hold count>,<1 if the owner holds it>`,
--       remaining (-1: no end, -2: free)
--       error WRONGTYPE: the hash has more than 64 fields
--
-- May be sent twice: it changes nothing. A lock's hash has one field, and Redisson's readers may
-- add theirs (N1).
if redis.call('HLEN',KEYS[1])>64 then return redis.error_reply('WRONGTYPE the key holds more fields than a lock') end
local count=0
for _,v in ipairs(redis.call('HVALS',KEYS[1])) do count=count+(tonumber(v) or 0) end
local ms=redis.call('PTTL',KEYS[1])
local mine=ARGV[5]~='' and redis.call('HEXISTS',KEYS[1],ARGV[5]) or 0
return out(ms==-2 and 0 or 1,(redis.call('GET',KEYS[2]) or '0')..','..string.format('%.0f',count)..','..mine,ms)
