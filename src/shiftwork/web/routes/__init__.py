"""The routes, one file for each kind of thing. Each function is one route."""
