-- with once, fair_rw
-- Ends all holds of a fair read-write lock, whichever owners have them, and publishes to the
-- holders and to the waiters that can enter now.
--
-- KEYS  1 record of this request, 2 to 8 as in parts/fair_rw.lua
-- ARGV  5 window in ms   6 max holders
-- Reply 1 was held and is free now: number of holds that ended   0 was not held   and those of
--         parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, so a copy never ends
-- a later hold.
local n=count_live(HOLDERS)
end_holds()
wake(tonumber(ARGV[6]))
unregister()
return done(n>0 and 1 or 0,text(n))
