-- Counts the work of a script: runs the text that follows as `script`, and returns the numbers of
-- its commands, elements and bytes, then its reply or error.
--
-- An element is an argument of a command, an element of its reply, or an element that the command
-- passes in a list or deletes. The bytes are those of arguments and replies. A message that is
-- published counts as elements and bytes, not as a command.
local real=redis
local commands,elements,bytes=0,0,0
local function add(v) elements=elements+1 bytes=bytes+#tostring(v) end
local function add_reply(v)
  if type(v)~='table' then return add(v) end
  if v.ok or v.err then return add(v.ok or v.err) end
  for i=1,#v do add_reply(v[i]) end
end
local sizes={list='LLEN',hash='HLEN',zset='ZCARD'}
local function size(key)
  local kind=real.call('TYPE',key).ok
  return sizes[kind] and real.call(sizes[kind],key) or kind=='none' and 0 or 1
end
-- Elements that a command touches and does not return. UNLINK leaves all but small collections to
-- another thread. A search in a list ends at the first match.
local function all(...) local n=0 for _,key in ipairs{...} do n=n+size(key) end return n end
local function search(key,element)
  local at=real.call('LPOS',key,element)
  return at and at+1 or size(key)
end
local touched={
  DEL=all,
  UNLINK=function(key) return math.min(size(key),64) end,
  LPOS=search,
  LREM=function(key,count,element) return tonumber(count)==0 and size(key) or search(key,element) end,
  LINSERT=function(key,_,pivot) return search(key,pivot) end,
  LSET=function(key,at) return tonumber(at) end,
  LINDEX=function(key,at) return math.min(math.abs(at),size(key)) end,
}
local function run(how,name,...)
  name=name:upper()
  if name~='PUBLISH' and name~='SPUBLISH' then commands=commands+1 end
  for i=1,select('#',...) do add((select(i,...))) end
  if touched[name] then elements=elements+touched[name](...) end
  local reply=how(name,...)
  add_reply(reply)
  return reply
end
local redis=setmetatable({
  call=function(...) return run(real.call,...) end,
  pcall=function(...) return run(real.pcall,...) end,
},{__index=real})
local function work(ok,reply)
  -- An error inside of a list would be an error of the whole.
  if type(reply)=='table' and reply.err then ok,reply=false,reply.err end
  return {commands,elements,bytes,ok and reply or 'error: '..tostring(reply)}
end
