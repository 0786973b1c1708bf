"""The company's morning, in compressed time, for real: ten fixed workers against elastic pools, with the same jobs."""
