"""What people hold: workers, calls and jobs, and how payloads are packed, checked and redacted."""
