-- with once
-- Ends the holds of values of a group, whichever owners have them.
--
-- KEYS  1 record of this request, 2 the group, 3 its channel
-- ARGV  5 window in ms   6 and on: the values' fields
-- Reply 1 some had an owner: how many   0 none had   and those of parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, so a copy never ends
-- the next hold.
local freed=0
for i=6,#ARGV do
  local f=ARGV[i]
  local h=redis.call('HGET',KEYS[2],f)
  if h then
    freed=freed+1
    redis.call('HDEL',KEYS[2],f,f..':'..h..':expire_time',f..':'..h..':lock_count')
  end
end
if freed>0 then say(KEYS[3],'0') end
return done(freed>0 and 1 or 0,tostring(freed))
