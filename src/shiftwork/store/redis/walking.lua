-- Walking an index of jobs by when they were created, newest first.

-- How many members of the index come up to a place {created_at, id}, and with it if a job is there.
local function up_to(index, place)
  local low, high = 0, call('ZCARD', index)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = call('ZREVRANGE', index, middle, middle, 'WITHSCORES')
    local created = tonumber(found[2])
    if created < place[1] or (created == place[1] and less(found[1], place[2])) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
