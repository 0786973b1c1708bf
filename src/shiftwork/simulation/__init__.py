"""The whole system in one thread and in virtual time: nodes, their processes, clients and faults, all from one seed.

The app, the runtime and the core are the real ones. What is simulated is around them: time (`virtual_loop`), chance and
the clocks of machines (`ambience`), processes (`sim_process`), the way to the store (`network`), and what connects a
node with the processes that it starts (`links`, `sim_child`).
"""
