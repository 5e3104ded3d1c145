"""Threads of one saver into another, so that they go on there.

`import_threads` copies whole threads: every checkpoint of every namespace with
its parents, metadata, values and pending writes. From savers of LangGraph it
also takes what ties a paused step to its tasks: see `peer`.
"""

from towpath.importing.failure import ThreadImportError
from towpath.importing.sources import open_source
from towpath.importing.threads import Imported, import_threads

__all__ = ["Imported", "ThreadImportError", "import_threads", "open_source"]
