"""The tags of our templates. Django finds them by the name of their file."""
