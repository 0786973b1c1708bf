-- results: ids. Returns the result of each job, or nothing where it has none.

return read_all(RESULT, A[1])
