"""Values to show to people, pages and programs. Nothing here reads the store."""
