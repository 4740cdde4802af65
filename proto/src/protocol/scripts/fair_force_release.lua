-- with once, fair, kind
-- Ends the hold of a fair lock, whichever owner has it, and publishes to the next waiter.
--
-- KEYS  1 record of this request, 2 to 8 as in parts/fair.lua
-- ARGV  5 window in ms   6 to 9 as in parts/fair.lua
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, so a copy never ends
-- the next hold. Fails with WRONGTYPE if the name is a semaphore's or a group's (N3).
if is_group(KEYS[2]) then return other_kind() end
local held=call('UNLINK',KEYS[2])
head(nil,true)
return done(held,'0')
