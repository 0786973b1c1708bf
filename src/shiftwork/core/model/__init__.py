"""The values that everything speaks of: jobs, outcomes, workers, flows, docs. No rule about them: those are in the other folders."""
