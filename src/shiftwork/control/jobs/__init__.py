"""Jobs, flows and schedules: adding, finding, explaining and changing them, one or many.

What runs jobs (workers, pools, nodes, breakers) belongs in `control.system`, which may use this.
"""
