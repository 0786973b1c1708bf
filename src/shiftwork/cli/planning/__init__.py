"""Commands about days that did not happen yet: record, plan."""
