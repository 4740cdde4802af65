-- Tells which kind of object a hash is, by the form of its fields.
--
-- A group's fields begin with the 22 base64 characters of a value's hash, alone or before a `:`. A
-- lock's fields are `<uuid>:<number>`, with or without `:write` after it, and `mode` for a
-- read-write lock. Base64 has no `-`, and a UUID has one as its 9th character. A field of any other
-- form does not tell the kind.
local function is_group_field(f) return #f:match('^[%w+/]*')==22 and (#f==22 or f:sub(23,23)==':') end
local function is_lock_field(f) return f=='mode' or f:sub(9,9)=='-' and f:sub(37,37)==':' end
-- Returns one field of the hash, from a bounded slice of it; empty if the slice has none. Fails on
-- a key of another type.
local function some_field(key) return redis.call('HSCAN',key,0,'COUNT',10)[2][1] or '' end
local function is_group(key) return is_group_field(some_field(key)) end
local function other_kind() return redis.error_reply('WRONGTYPE the key holds an object of another kind') end
