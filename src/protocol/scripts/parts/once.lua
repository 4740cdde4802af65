-- The frame of a request that is done once: it ends here unless it is to be done now. Then `done` records the answer.
--
-- KEYS 1 record of the request: `<code>:<value>`, or `x` once it was cancelled   ARGV 5 window in ms
-- Reply of a recorded answer: ms is 1
--      -1 late: not done and never will be   -5 later than the window: cannot be told any more
--      -2 cancelled: never done              -4 a bound is required; nothing heals what is done too late (C3)
--
-- Every answer is recorded, a no as well: else a copy of what was refused could be done later. Its first write is a deletion, so
-- it works when memory is full (C5).
local window=tonumber(ARGV[5])
local record=redis.call('GET',KEYS[1])
if record=='x' then return out(-2,'0',0) end
if record then local code,value=record:match('^(%-?%d+):(.*)$') return out(tonumber(code),value,1) end
if not bound then return out(-4,'0',0) end
if late() then return out(now>bound+window and -5 or -1,'0',0) end
redis.call('DEL',KEYS[1])
local function done(code,value) redis.call('SET',KEYS[1],code..':'..value,'PX',life()+window) return out(code,value,0) end
