-- After holds: takes these holds out and gives back their permits, so many each. Answers how many of them were there.
local function free(members,each)
  local v,n=available(),0
  for i=1,#members,500 do n=n+redis.call('ZREM',KEYS[3],unpack(members,i,math.min(i+499,#members))) end
  give(v,n*each)
  return n
end
