"""Who may do what: the store, opened when needed; tokens, actors, the audit, encryption."""
