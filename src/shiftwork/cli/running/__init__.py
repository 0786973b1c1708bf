"""Commands that run workers or give them work: run, deploy, web, enqueue, trigger."""
