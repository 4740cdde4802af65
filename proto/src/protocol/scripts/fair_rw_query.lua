-- Returns a slice of all live holds and waits of fair read-write locks of one namespace: names in
-- lexicographic order, of each name first its holders, by the end of their leases, then its
-- waiters, in the order of the queue. Removes names of which nothing is live.
--
-- KEYS  1 names, 2 ends: as in parts/fair_rw.lua. It also reads holders, queue and beats of the
--         names that it finds, which are in the same slot
-- ARGV  5 cursor: empty, or the one of the last slice   6 max entries   7 max names
-- Reply 1: lines, their fields separated by tabs; number of entries. First the cursor, empty at the
--         end: `name, h or w, score, id`. Then a line for each entry: `name, x or s, h (holds) or w
--         (waits), id, client id, ms left`
--
-- An entry's id is a hash of its member: the owner is the right to release, which no query shows.
-- May be sent twice: it changes nothing but the registry, and only what is not live.
local max,names=tonumber(ARGV[6]),tonumber(ARGV[7])
local live='('..string.format('%.0f',now)
local from,phase,mark,seen=ARGV[5]:match('^(.*)\t(.)\t(.*)\t(.*)$')
from=from or ''
local lines,n,looked={''},0,0
local function id(m) return redis.sha1hex(m):sub(1,16) end
local function finish(...) lines[1]=table.concat({...},'\t') return out(1,table.concat(lines,'\n'),n) end
local function add(name,m,kind,at)
  n=n+1
  local mode,client=m:match('^(.)[^|]*|(.*)$')
  lines[n+1]=table.concat({name,mode,kind,id(m),client,string.format('%.0f',at-now)},'\t')
end
-- A cursor with a score is within its name; without one it is behind it.
local found=call('ZRANGEBYLEX',KEYS[1],from=='' and '-' or (mark=='' and '(' or '[')..from,'+','LIMIT',0,names+1)
for i,name in ipairs(found) do
  if i>names or n>=max then return finish(found[i-1],'h','','') end
  local holders,queue,beats='el:'..name..':frw:holders','el:'..name..':frw:queue','el:'..name..':frw:beats'
  if name~=from then phase,mark,seen='h','','' end
  if phase=='h' then
    local first=call('ZCOUNT',holders,'-inf',mark=='' and now or '('..mark)
    -- Skips the entries of this score that the last slice had. If the last one of them has moved,
    -- by a renewal, they are returned again.
    local same=mark=='' and {} or call('ZRANGEBYSCORE',holders,mark,mark)
    for j,m in ipairs(same) do if id(m)==seen then first=first+j break end end
    first=math.max(first,call('ZCOUNT',holders,'-inf',now))
    local got=call('ZRANGE',holders,first,first+max-n-1,'WITHSCORES')
    for j=1,#got,2 do add(name,got[j],'h',tonumber(got[j+1])) end
    if n>=max then return finish(name,'h',got[#got],id(got[#got-1])) end
    mark='-1'
  end
  repeat
    local page=call('ZRANGEBYSCORE',queue,'('..mark,'+inf','WITHSCORES','LIMIT',0,32)
    for j=1,#page,2 do
      if n>=max or looked>=4*max then return finish(name,'w',mark,'') end
      looked,mark=looked+1,page[j+1]
      local e=tonumber(call('ZSCORE',beats,page[j]) or nil)
      if e and e>now then add(name,page[j],'w',e) end
    end
  until #page<64
  if call('ZCOUNT',holders,live,'+inf')+call('ZCOUNT',beats,live,'+inf')==0 then call('ZREM',KEYS[1],name) call('ZREM',KEYS[2],name) end
end
return finish()
