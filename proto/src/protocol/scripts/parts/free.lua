-- After holds: removes these holds and gives back `each` permits for each of them. Returns how many
-- holds there were.
local function free(members,each)
  local v,n=available(),0
  for i=1,#members,500 do n=n+redis.call('ZREM',KEYS[3],unpack(members,i,math.min(i+499,#members))) end
  give(v,n*each)
  return n
end
