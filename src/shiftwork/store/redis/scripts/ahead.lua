-- ahead: pool, places as {worker, rank, id}, how many workers to look at. Returns for each place the workers that have jobs
-- ahead of it in the queue, each with their number, in one flat list; and whether these are all. Nothing is counted one by
-- one.

local pool, most = A[1], A[3]

local function ahead_in(queue, rank, id) -- the jobs of one rank are in the order of their ids
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

local function ahead_of(own, rank, id)
  local counts = {}
  local function look_at(worker)
    local n = ahead_in(lane_key(pool, worker), rank, id)
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
end

local answers = {}
for n, place in ipairs(A[2]) do
  answers[n] = ahead_of(place[1], exact(place[2]), place[3])
end
return answers
