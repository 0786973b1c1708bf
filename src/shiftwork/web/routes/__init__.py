"""What can be asked for and changed, one file for each kind of thing. Each function is one route, typed."""
