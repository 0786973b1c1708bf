"""The promises, each as a pure function over a recorded history.

A rule reports only what no legal execution can have produced. A call without an answer may have happened or not, and
two calls that overlapped may have taken effect in either order: then the rule assumes whatever is legal. What a rule
proves, and what it cannot see, is in its docstring. `shiftwork.history.judging` lists them all.

That a job ends once is in `fences` (one outcome under each fence) and in `holding` (an ended job is not claimed again).
"""
