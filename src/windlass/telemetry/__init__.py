"""What windlass tells other systems of itself."""
