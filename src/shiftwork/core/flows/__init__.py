"""Jobs that wait for other jobs: when they are released, what they get of the others, how a flow is drawn."""
