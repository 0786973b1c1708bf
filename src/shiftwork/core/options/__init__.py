"""What people may write of workers, pools and schedules: types, checks, and the gates that follow."""
