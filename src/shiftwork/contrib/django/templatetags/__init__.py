"""The tags of our templates."""
