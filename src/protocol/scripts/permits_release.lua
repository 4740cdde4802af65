-- with holds, free, give_back, raw
-- Gives the permits of an owner back, or ends an acquisition that has none (abandon), so that no copy of it can be granted.
--
-- KEYS  1 latch of the owner, 2 the semaphore's name, 3 the set of permits, 4 the channel
-- ARGV  5... permit ids, in hexadecimal digits
-- Reply 1 given back: all of them   0 some were not held, or not any more; both: how many were given back
--
-- May be sent twice, and at any time: an id that is not in the set any more never comes back. The number is recorded in the
-- latch and repeated. The first write is a removal, so it works when memory is full (C5).
return give_back(raw(5),1)
