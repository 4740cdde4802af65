-- Returns the permit ids among the arguments, from number `from` on, in Redisson's form: the bytes
-- that their digits spell. Each pair of digits is converted once, since a call may have a thousand
-- ids.
local function raw(from)
  local ids,bytes={},setmetatable({},{__index=function(all,c) all[c]=string.char(tonumber(c,16)) return all[c] end})
  for i=from,#ARGV do ids[#ids+1]=ARGV[i]:gsub('%x%x',bytes) end
  return ids
end
