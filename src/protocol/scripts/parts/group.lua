-- How long a value of a group is still held, as Redisson keeps it: its holder under the value's field, and beside that the
-- time at which the hold ends, by the holder's clock.
--
-- KEYS 2 the group
-- A hold of Redisson's counts for `pad` longer, since its clock may be behind. The end of one of ours is by Redis' clock; its
-- UUID tells, which is of version 8. An owner without an end, or whose end has passed, is a leftover: it holds nothing, and
-- `ends_in` returns nothing.
local group=KEYS[2]
local function ends_in(e,h,pad)
  e=tonumber(e or nil)
  if e and h:sub(15,15)~='8' then e=e+pad end
  return e and e>now and e-now
end
-- The whole group ends when Redis says so, whatever its fields say.
local function within(ms) local all=redis.call('PTTL',group) return all>=0 and all<ms and all or ms end
