-- When a hold ends that begins now: `skew` later than its lease, which is nil for a hold without one. Its score is then Redisson's.
local never=922337203685477
local function ends(lease,skew) return lease and now+lease+skew or never end
-- Prolongs holds of the latch that is KEYS[1] (C6, C7); answers the remaining ms of the one that ends first (-1: no end), and nil
-- when one of them is not there: then it does nothing.
local function extend(set,members,lease,skew)
  local to,first=ends(lease,skew),never
  for _,m in ipairs(members) do
    local at=tonumber(redis.call('ZSCORE',set,m))
    if not at then return end
    first=math.min(first,at)
  end
  -- C5: this first.
  redis.call('PEXPIRE',KEYS[1],math.max(life(lease),redis.call('PTTL',KEYS[1])))
  if first<to then
    for _,m in ipairs(members) do if tonumber(redis.call('ZSCORE',set,m))<to then redis.call('ZADD',set,to,m) end end
    first=to
  end
  return first<never and first-skew-now or -1
end
