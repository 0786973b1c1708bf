"""Virtual time: what pools would do with a day of traffic, by their real rules. Imports core and nothing else."""
