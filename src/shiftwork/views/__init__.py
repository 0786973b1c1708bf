"""Values to show to people, pages and programs: the snapshot, the overview, explanations, metrics.

Nothing here reads the store: `control` does, and passes what it read. What programs see as JSON is in `views.shapes`.
"""
