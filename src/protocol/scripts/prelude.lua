-- Common to all scripts: put in front of each by build.rs, which also takes out the comments.
--
-- ARGV 1-4 of every script
--   1 request id, echoed   2 not-after in server ms, or empty   3 keep in ms   4 publish: P, S or B (both)
-- Reply of every script: five flat elements
--   code, value (decimal text), ms, server ms, request id
-- src/protocol/README.md has the codes and the rules (C1 to C8) that the scripts speak of.
local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000)
local rid,bound,keep,pub=ARGV[1],tonumber(ARGV[2]),tonumber(ARGV[3]),ARGV[4]
local function out(code,value,ms) return {code,value,ms,now,rid} end
-- C2: how long a latch, a tombstone or a record must live so that every copy of its request meets it or is late.
local function life(lease) local k=math.max(keep,lease or 0) if bound and bound-now>k then k=bound-now end return k+1000 end
local function late() return bound and now>bound end
-- A message is a hint: a server that does not let us publish, or cannot, must not stop a release half-way.
local function say(channel,message) if pub~='S' then redis.pcall('PUBLISH',channel,message) end if pub~='P' then redis.pcall('SPUBLISH',channel,message) end end
-- C7: only ever longer. A key without an end gets one.
local function longer(key,ms) if redis.call('PTTL',key)<ms then redis.call('PEXPIRE',key,ms) end end
