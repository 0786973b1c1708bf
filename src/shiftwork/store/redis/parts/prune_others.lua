-- prune, continued: jobs that belong to a flow, have tags, or that others need. Few calls have any.

return { delist = delist, flush_flows = flush_flows, is_awaited = is_awaited, give_up_waiters = give_up_waiters }
