"""The run, and reads and edits of state, as programs that do no I/O.

A program is a generator: it yields commands (launch these tasks, wait,
persist this) and is sent what came of them. A driver obeys; it decides how,
never what. Nothing here may read a clock, start a thread or touch a loop.
"""
