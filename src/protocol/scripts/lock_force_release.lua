-- with once
-- Ends whatever hold a lock has, whoever holds it.
--
-- KEYS  1 record of this request, 2 the lock's name, 3 its channel
-- ARGV  5 window in ms
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the answer is recorded under the request id and repeated, so a copy never throws out the next holder.
-- Fails on what is no hash: a semaphore of the same name is not ours to delete.
redis.call('HEXISTS',KEYS[2],'')
local held=redis.call('DEL',KEYS[2])
if held==1 then say(KEYS[3],'0') end
return done(held,'0')
