-- Returns the end of a hold that begins now: `skew` later than its lease. A hold without a lease
-- (nil) gets the score that Redisson uses for that.
local never=922337203685477
local function ends(lease,skew) return lease and now+lease+skew or never end
-- Writes the ends of these holds, 250 at a time, since a command takes only some thousands of
-- arguments.
local function set_ends(set,to,members)
  for i=1,#members,250 do
    local args={}
    for j=i,math.min(i+249,#members) do args[#args+1]=to args[#args+1]=members[j] end
    redis.call('ZADD',set,unpack(args))
  end
end
-- Extends the holds of the latch KEYS[1] (C6, C7). Returns the remaining ms of the hold that ends
-- first (-1: no end). Returns nil and changes nothing if one of them is missing.
local function extend(set,members,lease,skew)
  local to,first,short=ends(lease,skew),never,{}
  for _,m in ipairs(members) do
    local at=tonumber(redis.call('ZSCORE',set,m))
    if not at then return end
    first=math.min(first,at)
    if at<to then short[#short+1]=m end
  end
  -- C5: this command comes first.
  redis.call('PEXPIRE',KEYS[1],math.max(life(lease),redis.call('PTTL',KEYS[1])))
  if first<to then
    set_ends(set,to,short)
    first=to
  end
  return first<never and first-skew-now or -1
end
