"""A plan for people: charts, words, tables and one HTML page."""
