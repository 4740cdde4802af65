-- How long a group is kept for a hold: beyond the time that Redisson's slowest clock takes for the
-- hold's end. Redisson does not extend a group whose PTTL is 0: one of its waiters, which retry
-- just when a hold ends, would be granted a hash that is gone in the next ms.
local function kept(lease,pad) return lease+2*pad+1000 end
-- After group: extends the hold of an owner (C6, C7) and returns its remaining ms. The end in the
-- fields is `pad` later, for a clock of Redisson's that is ahead; the holder never counts on that.
--
-- KEYS 1 latch of the owner   ARGV 5 owner field, from `first` on the values' fields
local function stretch(first,lease,pad)
  -- C5: this command comes first.
  redis.call('PEXPIRE',KEYS[1],math.max(life(lease),redis.call('PTTL',KEYS[1])))
  local to,least=now+lease+pad
  for i=first,#ARGV do
    local f=ARGV[i]..':'..ARGV[5]..':expire_time'
    local e=tonumber(redis.call('HGET',group,f) or nil)
    if not e or e<to then redis.call('HSET',group,f,to) e=to end
    if not least or e<least then least=e end
  end
  -- A group without an end stays without one: values of another owner may be in it.
  if redis.call('PTTL',group)~=-1 then longer(group,kept(lease,pad)) end
  return least-now-pad
end
