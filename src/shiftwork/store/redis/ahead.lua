-- ahead: pool, worker, rank, id, how many workers to look at. Returns the workers that have jobs ahead of this place in the
-- queue, each with their number, in one flat list; and whether these are all. Nothing is counted one by one.

local pool, own, rank, id, most = A[1], A[2], exact(A[3]), A[4], A[5]

local function ahead_in(queue) -- the jobs of one rank are in the order of their ids
  local low, high = call('ZCOUNT', queue, '-inf', '(' .. rank), call('ZCOUNT', queue, '-inf', rank)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if less(call('ZRANGE', queue, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local counts = {}

local function look_at(worker)
  local n = ahead_in(lane_key(pool, worker))
  if n > 0 then
    counts[#counts + 1], counts[#counts + 2] = worker, n
  end
end

look_at(own)
-- A queue whose first job is not ahead has none that is.
local entries = call('ZRANGE', P .. 'heads:' .. pool, '-inf', rank, 'BYSCORE', 'LIMIT', 0, most + 1)
for n = 1, math.min(most, #entries) do
  local worker = string.match(entries[n], '^.*%z(.*)$')
  if worker ~= own then
    look_at(worker)
  end
end
return { counts, #entries <= most and 1 or 0 }
