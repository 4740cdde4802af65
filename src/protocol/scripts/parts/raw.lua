-- The permit ids among the arguments, from the one of this number on, as Redisson stores them: the bytes that their digits spell.
local function raw(from)
  local ids={}
  for i=from,#ARGV do ids[#ids+1]=ARGV[i]:gsub('%x%x',function(c) return string.char(tonumber(c,16)) end) end
  return ids
end
