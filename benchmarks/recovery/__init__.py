"""How long it takes until the jobs of a node that was killed run again."""
