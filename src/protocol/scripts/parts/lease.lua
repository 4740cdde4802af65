-- When a hold ends that begins now: `skew` later than its lease, which is nil for a hold without one. Its score is then Redisson's.
local never=922337203685477
local function ends(lease,skew) return lease and now+lease+skew or never end
-- Writes when these holds end: 250 at a time, since a command takes no more than some thousands of arguments.
local function set_ends(set,to,members)
  for i=1,#members,250 do
    local args={}
    for j=i,math.min(i+249,#members) do args[#args+1]=to args[#args+1]=members[j] end
    redis.call('ZADD',set,unpack(args))
  end
end
-- Prolongs holds of the latch that is KEYS[1] (C6, C7); answers the remaining ms of the one that ends first (-1: no end), and nil
-- when one of them is not there: then it does nothing.
local function extend(set,members,lease,skew)
  local to,first,short=ends(lease,skew),never,{}
  for _,m in ipairs(members) do
    local at=tonumber(redis.call('ZSCORE',set,m))
    if not at then return end
    first=math.min(first,at)
    if at<to then short[#short+1]=m end
  end
  -- C5: this first.
  redis.call('PEXPIRE',KEYS[1],math.max(life(lease),redis.call('PTTL',KEYS[1])))
  if first<to then
    set_ends(set,to,short)
    first=to
  end
  return first<never and first-skew-now or -1
end
