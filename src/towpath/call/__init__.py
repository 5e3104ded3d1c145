"""Calling a node: its context, one attempt, and threads to run it in.

The only rooms in which user code runs. An attempt is written once, as a
generator of calls, and obeyed by a blocking and by an asyncio runner.
"""
