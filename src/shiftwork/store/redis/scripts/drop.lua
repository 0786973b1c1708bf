-- drop: name, holder.

return call('ZREM', P .. 'place:' .. A[1], A[2])
