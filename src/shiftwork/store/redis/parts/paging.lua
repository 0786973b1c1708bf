-- Paging through an index of jobs by creation time, newest first or oldest first.

-- How many members of the index come before a position {created_at, id}, including a job at that position.
local function up_to(index, position, oldest)
  local created_at, id = position[1], position[2]
  local low, high = 0, call('ZCARD', index)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = call(oldest and 'ZRANGE' or 'ZREVRANGE', index, middle, middle, 'WITHSCORES')
    local created, behind = tonumber(found[2]), nil
    if created ~= created_at then
      behind = (created > created_at) == (oldest or false)
    elseif oldest then
      behind = less(id, found[1])
    else
      behind = less(found[1], id)
    end
    if behind then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
