-- After holds: takes these holds out and gives back their permits, so many each. Answers how many of them were there.
local function free(members,each)
  local v,n=available(),0
  for _,m in ipairs(members) do n=n+redis.call('ZREM',KEYS[3],m) end
  give(v,n*each)
  return n
end
