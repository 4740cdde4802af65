-- with once, kind
-- Ends the hold of a lock, whichever owner has it.
--
-- KEYS  1 record of this request, 2 the lock's name, 3 its channel
-- ARGV  5 window in ms
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, so a copy never ends
-- the next hold. Fails with WRONGTYPE if the name is a semaphore's or a group's (N3).
if is_group(KEYS[2]) then return other_kind() end
local held=redis.call('UNLINK',KEYS[2])
if held==1 then say(KEYS[3],'0') end
return done(held,'0')
