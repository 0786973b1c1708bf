"""One machine's part: its instances, leases, pulse and namespace guard; its start and its stop."""
