-- The remaining time of a value of a group, in Redisson's form: the value's field names the holder,
-- and a second field has the time at which the hold ends, by the holder's clock.
--
-- KEYS 2 the group
--
-- A hold of Redisson's counts for `pad` longer, since its clock may be behind. The end of a hold of
-- ours is by Redis' clock; its UUID is of version 8. An owner without an end, or with an end in the
-- past, is a leftover: it holds nothing, and `ends_in` returns nothing.
local group=KEYS[2]
local function ends_in(e,h,pad)
  e=tonumber(e or nil)
  if e and h:sub(15,15)~='8' then e=e+pad end
  return e and e>now and e-now
end
-- Returns `ms`, but not more than the remaining time of the whole hash.
local function within(ms) local all=redis.call('PTTL',group) return all>=0 and all<ms and all or ms end
