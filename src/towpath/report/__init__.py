"""What happened on a thread: for a picture of a run, and as one page of HTML.

Snapshots come in one by one, newest first, and are kept as short texts
(`moments`), so that a long thread is never held whole. `facts` counts what ran;
`page` writes the report. Nothing here reads a saver or runs a graph.
"""
