-- with holds, free, give_back
-- Gives permits of a semaphore back, or ends an acquisition that has none (abandon), so that no copy of it can be granted.
--
-- KEYS  1 latch of the owner, 2 the semaphore's name, 3 the set of holds, 4 the channel
-- ARGV  5 owner field   6 how many permits
-- Reply 1 given back   0 were not held, or not any more
--
-- May be sent twice, and at any time: what is not in the set any more is not given back again. The verdict is recorded in
-- the latch and repeated. The first write is a removal, so it works when memory is full (C5).
return give_back({ARGV[6]..'|'..ARGV[5]},tonumber(ARGV[6]))
