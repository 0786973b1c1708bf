"""Jobs and flows: adding, finding, explaining, changing them, one or many."""
