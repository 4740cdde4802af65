-- After lease: extends the holds of an owner.
--
-- KEYS 1 latch of the owner, 2 the set of holds
-- ARGV 5 token of the grant   6 lease in ms, empty for none
local function renew(members,skew)
  if late() then return out(-1,'0',0) end
  local latch=redis.call('GET',KEYS[1])
  -- A hold may outlive its latch. An owner is granted only once, so its members are proof enough.
  local ms=(not latch or latch==ARGV[5]) and extend(KEYS[2],members,tonumber(ARGV[6]),skew)
  if not ms then return out(-3,'0',0) end
  return out(1,ARGV[5],ms)
end
