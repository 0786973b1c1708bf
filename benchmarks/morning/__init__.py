"""The company's morning, in compressed time, for real: ten fixed slots against elastic pools, with the same jobs."""
