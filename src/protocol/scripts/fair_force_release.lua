-- with once, fair
-- Ends whatever hold a fair lock has, whoever holds it; and tells who is next.
--
-- KEYS  1 record of this request, 2 to 8 as in parts/fair.lua
-- ARGV  5 window in ms   6 to 9 as in parts/fair.lua
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the answer is recorded under the request id and repeated, so a copy never throws out the next holder.
-- Fails on what is no hash: a semaphore of the same name is not ours to delete.
call('HEXISTS',KEYS[2],'')
local held=call('DEL',KEYS[2])
head(nil,true)
return done(held,'0')
