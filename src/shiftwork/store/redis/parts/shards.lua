-- Where the fields of a job are. Every script begins with this part.
--
-- A hash that grows beyond a power of two is slow until each of its fields has been moved, which the server does one by
-- one as they are used. So the jobs that a process enqueues fill one shard after the other: our ids begin with the time
-- in milliseconds, of which a shard has 17 minutes, and a count, of which it has 4096. All other ids share one shard.
local function shard(id)
  if #id == 32 and string.sub(id, 1, 2) == '01' then
    return ':' .. string.sub(id, 1, 7) .. string.sub(id, 13, 15)
  end
  return ''
end
