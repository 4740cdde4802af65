-- with once, holds, remove_holds, lease, raw, permit_range
-- Changes the number of permits of a permit-expirable semaphore, or ends or extends single permits.
--
-- KEYS  1 record of this request, 2 the semaphore's name, 3 the set of permits, 4 the channel
-- ARGV  5 window in ms   6 operation   7, 8 a number each   9... permit ids, in hexadecimal digits
--         `add`: adds ARGV 7 available permits, removes them if negative; creates the semaphore
--         `set`: sets the total to ARGV 7
--         `new`: creates the semaphore with ARGV 7 permits, if there is none
--         `free`: gives these ids back
--         `lease`: sets the end of these ids to lease ARGV 7 (-1: never) plus skew ARGV 8, also
--           sooner
--         `clear`: gives back all held permits, of any owner
-- Reply 1 done, 0 there is one (`new`), not all were held (`free`, `lease`), nothing was held
--         (`clear`); and those of parts/once.lua. value: number of available permits; for `free`,
--         `lease` and `clear` the number of changed ids
--       error LIMIT: available and held permits would exceed 2^31-1, or the available ones be less
--         than -2^31
--
-- May be sent twice: the reply is recorded under the request id and repeated. LIMIT changes nothing
-- and is not recorded, since the client cancels the request then. The end of the semaphore stays as
-- it is; Redisson removes it when it adds permits.
local op,p,v,ids=ARGV[6],tonumber(ARGV[7]),available(),raw_ids(9)
local n=0
if op=='free' then n=remove_holds(ids,1)
elseif op=='lease' then
  local held={}
  for _,id in ipairs(ids) do if call('ZSCORE',KEYS[3],id) then held[#held+1]=id end end
  n=#held
  set_ends(KEYS[3],ends(p>=0 and p or nil,tonumber(ARGV[8])),held)
elseif op=='clear' then
  n=held_permits()
  call('UNLINK',KEYS[3])
  add_permits(v,n)
  return done(n>0 and 1 or 0,tostring(n))
else
  if op=='new' and v then return done(0,string.format('%.0f',v)) end
  if op=='set' and v then p=p-v-held_permits() end
  local refused=out_of_range(v or 0,p)
  if refused then return refused end
  v=call('INCRBY',KEYS[2],p)
  if p>0 and v>0 then publish(KEYS[4],v) end
  return done(1,string.format('%.0f',v))
end
return done(n==#ids and 1 or 0,tostring(n))
