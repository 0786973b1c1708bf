"""What shiftwork reports to other systems: traces. Metrics are text made of the overview: `views.metrics`."""
