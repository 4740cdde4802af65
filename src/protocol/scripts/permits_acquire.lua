-- with store_token, mint, holds, evict, lease, listeners, take, raw
-- Takes permits of a permit-expirable semaphore, one for each id: all or none.
--
-- KEYS  1 latch of the owner, 2 the semaphore's name, 3 the set of permits, 4 the channel, 5 token key
-- ARGV  5 skew in ms   6 lease in ms, empty for none   7 last try: 1 or 0   8 how long the token key is kept in ms
--       9 whether others are to be told when none is left: 1 or 0   10... permit ids, in hexadecimal digits
-- Reply 1 granted: token, lease (-1: no end)   2 already yours and extended: token, remaining (-1: no end)
--       0 too few: how many are available (empty: there is no semaphore), ms until the next permit ends (-1: none does; 0: more have ended than one call
--         takes out)
--      -1 late   -2 gone: this owner has ended   -3 lost: not all of them are held any more
--      -4 a bound is required: no lease would heal what is done too late   -6 the last token is out of range
--       error LIMIT: more than 100,000 permits would be held
--
-- May be sent twice: the latch lets one owner be granted once (C1), so no id comes back. Granted again it answers 2 with the
-- same token and extends (C6). A refusal writes nothing but the tombstone of a last try (C4) and what had ended before.
local ids=raw(10)
return take(ids,#ids,tonumber(ARGV[5]),100000,false,ARGV[9]=='1')
