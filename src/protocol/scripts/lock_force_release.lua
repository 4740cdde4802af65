-- Ends whatever hold a lock has, whoever holds it.
--
-- KEYS  1 record of this request, 2 the lock's name, 3 its channel
-- ARGV  none beside the common ones
-- Reply 1 was held and is free now   0 was not held   -1 late: not done and never will be
--      -4 a bound is required: ask again with one (the server's clock is in this reply)
--
-- May be sent twice: the answer is recorded under the request id and repeated, so a copy never throws out the next
-- holder. Since no lease heals that, it is not done without a bound (C3).
local record=redis.call('GET',KEYS[1])
if record then return out(tonumber(record:sub(2)),'0',0) end
if not bound then return out(-4,'0',0) end
if late() then return out(-1,'0',0) end
-- Fails on what is no hash: a semaphore of the same name is not ours to delete.
redis.call('HEXISTS',KEYS[2],'')
local held=redis.call('DEL',KEYS[2])
if held==1 then say(KEYS[3],'0') end
redis.call('SET',KEYS[1],'x'..held,'PX',life())
return out(held,'0',0)
