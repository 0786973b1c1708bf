"""What is counted and reported: beats, statistics, history, events. Facts only; `core.health` judges."""
