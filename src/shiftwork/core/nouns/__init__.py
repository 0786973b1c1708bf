"""The nouns: jobs, outcomes, workers, flows, records. Values only; every rule about them is in another room."""
