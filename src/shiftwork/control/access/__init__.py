"""Access to the store, opened when needed; who may do what (tokens), who did what (the audit), and encryption.

Commands about jobs, workers or pools do not belong here: they use this.
"""
