"""What `shiftwork run` runs: the service, the processes it starts, loading an app, logging, probes and the exit."""
