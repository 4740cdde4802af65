-- After listeners: tells those who wait that somebody has it: whoever was woken as well and has not asked yet need not. The message
-- is the lease, and in its last three digits how many listen. Redisson lets pass what is neither 0 nor 1.
local function taken(channel,lease)
  say(channel,string.format('%.0f',lease*1000+math.min(listeners(channel),999)))
end
