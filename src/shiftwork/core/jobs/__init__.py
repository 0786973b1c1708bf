"""The rules of one job: its statuses, where an outcome takes it, what a person may change, what it may carry."""
