"""What runs them: workers, pools, nodes, breakers, the store's health, and what has happened."""
