"""The store on a Redis or Valkey server: standalone, behind Sentinel, or a cluster.

`store` has the class: each of its methods runs one script, atomically, on the server. What a script does is in the Lua
file that is named after its part of the protocol, in `scripts`; what several scripts use is in `parts`, with the
dictionary of keys in `parts/keys.lua` (`RedisStore` makes their prefix). The modules here turn values into arguments of
scripts, and replies into values: no rule is decided in Python, and no sentence for people is made in Lua. `rows` is how
a job is stored, `lua` loads the scripts. Connections are not here but in `server`.
"""
