"""From a slot to an end: call the function, watch its deadline, see what it does. Writes nothing."""
