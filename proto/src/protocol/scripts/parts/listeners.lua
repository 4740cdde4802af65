-- Returns how many clients listen to a channel; 0 if Redis does not report it.
local function listeners(channel)
  return tonumber(redis.pcall('PUBSUB',pub=='S' and 'SHARDNUMSUB' or 'NUMSUB',channel)[2]) or 0
end
