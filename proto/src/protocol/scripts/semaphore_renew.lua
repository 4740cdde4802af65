-- with lease, renew
-- Extends the lease of permits of a semaphore.
--
-- KEYS  1 latch of the owner, 2 the set of holds
-- ARGV  5 token of the grant   6 lease in ms, empty for none   7 owner field   8 number of permits
-- Reply 1 extended: token, remaining (-1: no end)   -1 late   -3 lost: nothing was extended
--
-- May be sent twice: it compares owner and token, and only extends (C7). Its first write works when
-- memory is full (C5).
return renew({ARGV[8]..'|'..ARGV[7]},0)
