-- with once
-- Counts a count-down latch down, sets it, or deletes it.
--
-- KEYS  1 record of this request, 2 the latch's name
-- ARGV  5 window in ms   6 operation: `down`, `set`, `delete`   7 a count
--       8 channel: not a key, since Redisson's form of it is in another slot for a name with braces
-- Reply 1 done, 3 it is open: nothing to count (`down`), 0 it is closed (`set`), open (`delete`);
--         and those of parts/once.lua. value: the new count, for `delete` the count before
--
-- May be sent twice: the reply is recorded under the request id and repeated, also when there was
-- nothing to do: a copy must not count on a latch that is set again.
local op,n,v=ARGV[6],KEYS[2],call('GET',KEYS[2])
local closed=v and v+0>0
if op=='down' and closed then
  v=call('DECR',n)>0 and call('GET',n) or '0'
  if v=='0' then call('DEL',n) publish(ARGV[8],'0') end
  return done(1,v)
end
if op=='set' then
  if closed then return done(0,v) end
  call('SET',n,ARGV[7])
  -- Redisson's clients close their gate of this latch on this message.
  publish(ARGV[8],'1')
  return done(1,ARGV[7])
end
-- A count of 0, which Redisson may have stored, would block its next `trySetCount`.
if v then call('DEL',n) end
if op=='down' then return done(3,'0') end
-- Redisson publishes 1 here, on which its own waiters keep waiting. On 0 they retry, and find no
-- latch.
if v then publish(ARGV[8],'0') end
return done(closed and 1 or 0,closed and v or '0')
