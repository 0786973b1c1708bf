"""What runs jobs: workers, pools, nodes, breakers; the store's health, and what has happened.

Commands about single jobs, flows and schedules belong in `control.jobs`.
"""
