-- A fencing token: above the last one of a token key and not below the clock. Nothing when it would leave 2^53.
-- It stays where Redisson keeps it; a key without an end is a fenced lock's and keeps having none.
local function mint(key,kept)
  local n=tonumber(redis.call('GET',key) or '0')
  -- The order matters: what is no number at all compares as neither.
  if not (n and n<9007199254740991) then return end
  n=string.format('%.0f',math.max(t[1]*1000000+t[2],n+1))
  if redis.call('PTTL',key)==-1 then redis.call('SET',key,n) else redis.call('SET',key,n,'PX',kept) end
  return n
end
