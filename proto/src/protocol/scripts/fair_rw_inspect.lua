-- Returns the state of a fair read-write lock. Writes nothing, but is sent as a script that may
-- write, so that the primary executes it.
--
-- KEYS  1 holders, 2 queue, 3 writers, 4 beats, 5 last: as in parts/fair_rw.lua
-- ARGV  5 member to look for, or empty
-- Reply 1 held, 0 free: `<last token, 0 if none>,<number of holders>,<1 if the member holds it>,
--         <0 free, 1 shared, 2 exclusive>,<number of waiters>,<exclusive members in the queue>,
--         <place of the member from 1, 0: not queued>`, ms until the last hold ends (-2: free)
--
-- May be sent twice: it changes nothing.
local live='('..string.format('%.0f',now)
local h=call('ZRANGEBYSCORE',KEYS[1],live,'+inf','LIMIT',0,1)[1]
local e=tonumber(call('ZSCORE',KEYS[1],ARGV[5]) or nil)
local last=tonumber(call('ZRANGE',KEYS[1],-1,-1,'WITHSCORES')[2] or nil)
local value={
  call('HGET',KEYS[5],'t') or '0',call('ZCOUNT',KEYS[1],live,'+inf'),e and e>now and 1 or 0,
  h and (h:sub(1,1)=='x' and 2 or 1) or 0,call('ZCOUNT',KEYS[4],live,'+inf'),call('ZCARD',KEYS[3]),
  (call('ZRANK',KEYS[2],ARGV[5]) or -1)+1,
}
return out(h and 1 or 0,table.concat(value,','),h and last-now or -2)
