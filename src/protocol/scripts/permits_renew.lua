-- with lease, renew, raw
-- Prolongs the permits of an owner.
--
-- KEYS  1 latch of the owner, 2 the set of permits
-- ARGV  5 token of the grant   6 lease in ms, empty for none   7 skew in ms   8... permit ids, in hexadecimal digits
-- Reply 1 extended: token, remaining of the permit that ends first (-1: no end)   -1 late
--      -3 lost: not all are held, nothing was extended
--
-- May be sent twice: it compares the token, and only extends (C7). Its first write passes when memory is full (C5).
return renew(raw(8),tonumber(ARGV[7]))
