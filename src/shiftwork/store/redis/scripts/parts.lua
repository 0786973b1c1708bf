-- parts: id, how many steps and how many signals, how many first and how many last bytes. Returns the newest steps, the
-- first signals that were not taken, each as the whole of it or its first bytes, and its last bytes or nothing; and the
-- numbers and bytes of all of them. The original is `shiftwork.core.jobs.durable.seen_parts`.

local id, most_steps, most_signals, head, tail = A[1], A[2], A[3], A[4], A[5]
local key = J .. id

local function append_seen(list, field)
  local value = call('HGET', key, field) or ''
  local cut = #value > head + tail
  list[#list + 1] = cut and string.sub(value, 1, head) or value
  list[#list + 1] = cut and string.sub(value, -tail)
end

local counts = call('HMGET', key, 'steps', 'step bytes', 'signals', 'signal bytes')
for n = 1, 4 do
  counts[n] = tonumber(counts[n]) or 0
end
local steps, signals, numbers = {}, {}, {}
for number = math.max(1, counts[1] - most_steps + 1), counts[1] do
  append_seen(steps, 'step' .. number)
end
if counts[3] > 0 and most_signals > 0 then
  for _, name in ipairs(call('HKEYS', key)) do
    numbers[#numbers + 1] = tonumber(string.match(name, '^signal(%d+)$'))
  end
  table.sort(numbers)
end
for n = 1, math.min(#numbers, most_signals) do
  append_seen(signals, 'signal' .. numbers[n])
end
return { steps, signals, counts[1], counts[2], counts[3], counts[4] }
