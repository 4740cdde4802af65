-- After listeners: publishes the grant, so that a waiter that was woken and has not yet retried
-- need not do so. The message is the lease, followed by the number of listeners in three digits.
-- Redisson ignores numbers other than 0 and 1.
local function taken(channel,lease)
  say(channel,string.format('%.0f',lease*1000+math.min(listeners(channel),999)))
end
