"""How many slots each pool has, and on which nodes. Facts in, a plan with its reasons out."""
