-- How many listen to a channel; 0 where Redis does not say.
local function listeners(channel)
  return tonumber(redis.pcall('PUBSUB',pub=='S' and 'SHARDNUMSUB' or 'NUMSUB',channel)[2]) or 0
end
