-- After store_token: mints a fencing token, above the last one of the token key and not below the
-- clock. Returns nothing if the token would leave 2^53.
local function mint(key,kept)
  local n=tonumber(redis.call('GET',key) or '0')
  -- The order matters: a NaN compares as neither smaller nor larger.
  if not (n and n<9007199254740991) then return end
  n=string.format('%.0f',math.max(t[1]*1000000+t[2],n+1))
  store_token(key,n,kept)
  return n
end
