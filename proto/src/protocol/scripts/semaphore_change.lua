-- with once, holds, evict, permit_range
-- Changes the number of available permits of a semaphore.
--
-- KEYS  1 record of this request, 2 the semaphore's name, 3 the set of holds, 4 the channel
-- ARGV  5 window in ms   6 operation   7 a number of permits
--       8 how long the semaphore lasts in ms, empty for ever
--         `add`: adds ARGV 7 (may be negative), creates the semaphore
--         `addx`: adds ARGV 7, if there is one   `set`: sets it to ARGV 7, if there is none
--         `drain`: takes all that are available; a negative number becomes 0
--         `clear`: gives back all holds of ours
-- Reply 1 done, 0 there is one (`set`), there is none (`addx`), nothing was held (`clear`); and
--         those of parts/once.lua. value: the new number of available permits, for `drain` the old
--         one; for `clear` the number of permits given back
--       error LIMIT: available and held permits would exceed 2^31-1, or the available ones be less
--         than -2^31
--
-- May be sent twice: the reply is recorded under the request id and repeated. LIMIT changes nothing
-- and is not recorded, since the client cancels the request then. The end of the semaphore stays as
-- it is; Redisson removes it when it adds or drains.
local op,p,v=ARGV[6],tonumber(ARGV[7]),available()
-- A semaphore that does not exist has no holders.
if not v then call('UNLINK',KEYS[3]) end
if op=='clear' then
  p=held_permits(true)
  call('UNLINK',KEYS[3])
  add_permits(v,p)
  return done(p>0 and 1 or 0,tostring(p))
end
if op=='drain' then
  v=evict(now,true) or 0
  if v~=0 then call('INCRBY',KEYS[2],-v) end
  return done(1,string.format('%.0f',v))
end
if op=='set' and v or op=='addx' and not v then return done(0,string.format('%.0f',v or 0)) end
local refused=out_of_range(v or 0,p,true)
if refused then return refused end
if op=='set' then
  if ARGV[8]=='' then call('SET',KEYS[2],p) else call('SET',KEYS[2],p,'PX',ARGV[8]) end
  v=p
else v=call('INCRBY',KEYS[2],p) end
if p>0 and v>0 then publish(KEYS[4],v) end
return done(1,string.format('%.0f',v))
