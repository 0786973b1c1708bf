"""How the command line reads and writes: parameters, tables, words, the full screen, languages."""
