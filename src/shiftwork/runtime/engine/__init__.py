"""Claim jobs, run one function, watch its deadline, collect its end and write the outcome."""
