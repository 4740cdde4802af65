-- After store_token: mints a fencing token, above the last one of a token key and not below the clock. Nothing when it would
-- leave 2^53.
local function mint(key,kept)
  local n=tonumber(redis.call('GET',key) or '0')
  -- The order matters: what is no number at all compares as neither.
  if not (n and n<9007199254740991) then return end
  n=string.format('%.0f',math.max(t[1]*1000000+t[2],n+1))
  store_token(key,n,kept)
  return n
end
