-- Runs a caller's own script, once, and only while a lease is held. The caller's script precedes
-- this text as `local own=(function() return function(KEYS,ARGV) … end end)()`: before everything
-- else, so that it cannot reach a local name of ours, and after a `return`, so that a text with an
-- `end` too many does not compile.
--
-- KEYS  1 record of this request, 2 latch of the owner, from 3 on the objects that are held, then
--         the caller's keys
-- ARGV  5 window in ms   6 token of the grant   7 once: 1 or 0   8 the largest result in bytes
--       9 value of each field of the hold   10 number of objects   11 number of fields; the fields;
--         then the caller's arguments
-- Reply 1 executed: its result as JSON, ms is 1 if recorded earlier   -3 lost: it was not executed
--      -11 failed: its error; its writes before that stay   and those of parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, unless the caller
-- says that running twice does no harm. The record is written first, and not by parts/once.lua,
-- whose first write is a deletion: Redis must reject the caller's script when memory is full. A
-- copy that finds only that first record does not know the result.
--
-- A hold exists as long as its fields do, even beyond its lease: no other owner has acquired it
-- since.
local window,once=tonumber(ARGV[5]),ARGV[7]=='1'
local record=once and call('GET',KEYS[1])
if record=='x' then return out(-2,'0',0) end
if record then local code,value=record:match('^(%-?%d+):(.*)$') return out(tonumber(code),value,1) end
if not bound then return out(-4,'0',0) end
if is_late() then return out(now>bound+window and -5 or -1,'0',0) end
-- A token that has risen since belongs to the same grant, since an owner is granted only once.
if (tonumber(call('GET',KEYS[2])) or 0)<tonumber(ARGV[6]) then return out(-3,'0',0) end
local objects,fields=2+ARGV[10],11+ARGV[11]
for i=3,objects do for j=12,fields do
  if call('HGET',KEYS[i],ARGV[j])~=ARGV[9] then return out(-3,'0',0) end
end end
local function note(text) if once then call('SET',KEYS[1],text,'PX',record_ttl()+window) end end
note('-5:0')
-- Converts as EVAL does, and also floats and tables with names. `false` becomes null, since Redis
-- passes nil to Lua as false.
local function json(v)
  local kind=type(v)
  if kind=='string' then return '"'..v:gsub('[%c"\\]',function(c) return string.format('\\u%04x',c:byte()) end)..'"' end
  if kind=='number' and v-v==0 then return string.format(v%1==0 and math.abs(v)<2^53 and '%.0f' or '%.17g',v) end
  -- Userdata: cjson.null.
  if kind=='nil' or kind=='boolean' or kind=='userdata' then return v==true and 'true' or 'null' end
  if kind~='table' then error('the result has no JSON: '..kind,0) end
  if type(v.err)=='string' then error(v,0) end
  if type(v.ok)=='string' then return json(v.ok) end
  local parts={}
  if #v>0 or next(v)==nil then
    for i=1,#v do parts[i]=json(v[i]) end
    return '['..table.concat(parts,',')..']'
  end
  for k,e in pairs(v) do parts[#parts+1]=json(tostring(k))..':'..json(e) end
  return '{'..table.concat(parts,',')..'}'
end
local function run()
  local text=json(own({unpack(KEYS,objects+1)},{unpack(ARGV,fields+1)}))
  if #text>tonumber(ARGV[8]) then error('the result is larger than '..ARGV[8]..' bytes',0) end
  local rest=text:gsub('[\240-\244][\128-\191][\128-\191][\128-\191]','?')
  rest=rest:gsub('[\224-\239][\128-\191][\128-\191]','?'):gsub('[\194-\223][\128-\191]','?')
  if rest:find('[\128-\255]') then error('the result is not UTF-8',0) end
  return text
end
local ok,result=pcall(run)
if not ok then
  if type(result)=='table' then result=result.err end
  result=tostring(result):gsub('[^\32-\126]','?'):sub(1,1000)
end
note((ok and '1:' or '-11:')..result)
return out(ok and 1 or -11,result,0)
