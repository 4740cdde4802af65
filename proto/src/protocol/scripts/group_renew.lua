-- with group, stretch
-- Extends a hold of values of a group.
--
-- KEYS  1 latch of the owner, 2 the group
-- ARGV  5 owner field   6 lease in ms   7 token of the grant
--       8 tolerated error of Redisson's clocks in ms   9 and on: the values' fields
-- Reply 1 extended: token, remaining   -1 late
--      -3 lost: number of the first lost value, 0 for all; nothing was extended
--
-- May be sent twice: it compares owner and token, and only extends (C7). Its first write works when
-- memory is full (C5).
if late() then return out(-1,'0',0) end
if redis.call('GET',KEYS[1])~=ARGV[7] then return out(-3,'0',0) end
for i=9,#ARGV do if redis.call('HGET',group,ARGV[i])~=ARGV[5] then return out(-3,tostring(i-8),0) end end
return out(1,ARGV[7],stretch(9,tonumber(ARGV[6]),tonumber(ARGV[8])))
