"""The study of a scenario for people: charts, words, tables and one HTML page. Nothing here simulates."""
