-- Paging through an index of jobs by creation time, newest first.

-- How many members of the index come before a position {created_at, id}, including a job at that position.
local function up_to(index, position)
  local created_at, id = position[1], position[2]
  local low, high = 0, call('ZCARD', index)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = call('ZREVRANGE', index, middle, middle, 'WITHSCORES')
    local created = tonumber(found[2])
    if created < created_at or (created == created_at and less(found[1], id)) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
