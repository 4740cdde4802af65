-- The frame of an idempotent request: the script returns here, unless the request is to be executed
-- now. In that case `done` records the reply.
--
-- KEYS 1 record of the request: `<code>:<value>`, or `x` once it was cancelled
-- ARGV 5 window in ms
-- Reply of a recorded request: ms is 1
--      -1 late: not executed and never will be   -5 later than the window: no longer known
--      -2 cancelled: never executed              -4 a bound is required (C3)
--
-- Every reply is recorded, refusals too: otherwise a copy of a refused request could be executed
-- later. The first write is a deletion, so it works when memory is full (C5).
local window=tonumber(ARGV[5])
local record=redis.call('GET',KEYS[1])
if record=='x' then return out(-2,'0',0) end
if record then local code,value=record:match('^(%-?%d+):(.*)$') return out(tonumber(code),value,1) end
if not bound then return out(-4,'0',0) end
if late() then return out(now>bound+window and -5 or -1,'0',0) end
redis.call('DEL',KEYS[1])
local function done(code,value) redis.call('SET',KEYS[1],code..':'..value,'PX',life()+window) return out(code,value,0) end
