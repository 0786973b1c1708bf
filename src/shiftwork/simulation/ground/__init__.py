"""What simulated processes stand on: time, chance, machines, threads, links, the way to the store, and the records.

It knows the runtime by its seams alone, and no app.
"""
