"""Pure decisions: no I/O, no clock, no randomness, no asyncio. Time and chance are arguments.

`doc_kinds` decodes the docs of a store, `stored_numbers` are the numbers that SQL and Lua share with these
rules, `steady_time` is the time of a store without a clock of its own, and `words` are durations, numbers and harmless
text. Everything else has its folder. What acts on a decision, or has to ask for a fact, belongs in the rooms above.
"""
