-- Common to all scripts: build.rs puts it in front of each, and removes the comments.
--
-- ARGV 1-4 of every script
--   1 request id, echoed   2 not-after in server ms, or empty   3 keep in ms
--   4 publish: P, S or B (both)
-- Reply of every script: five flat elements
--   code, value (decimal text), ms, server ms, request id
-- proto/src/protocol/README.md lists the codes and the rules (C1 to C8) that the scripts refer to.
local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000)
local rid,bound,keep,pub=ARGV[1],tonumber(ARGV[2]),tonumber(ARGV[3]),ARGV[4]
local function out(code,value,ms) return {code,value,ms,now,rid} end
-- C2: how long a latch, a tombstone or a record lives, so that every copy of its request either
-- meets it or is late.
local function life(lease) local k=math.max(keep,lease or 0) if bound and bound-now>k then k=bound-now end return k+1000 end
local function late() return bound and now>bound end
-- Publishes. A message is a hint: a server that forbids or lacks the command must not stop a
-- release half-way.
local function say(channel,message) if pub~='S' then redis.pcall('PUBLISH',channel,message) end if pub~='P' then redis.pcall('SPUBLISH',channel,message) end end
-- C7: only extends. A key without an end gets one.
local function longer(key,ms) if redis.call('PTTL',key)<ms then redis.call('PEXPIRE',key,ms) end end
