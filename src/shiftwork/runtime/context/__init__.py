"""What a running function may know and do: its context, steps, waits, transactions, log."""
