"""The main module of a process that a program under the hook started.

`multiprocessing` imports it in place of the program's own main module, under
the name `__mp_main__`; it installs the hook and becomes that module.
"""

from __future__ import annotations

import json
import os
import runpy
from typing import Any

from towpath.compat.hook import install
from towpath.compat.program import ENVIRONMENT


def become_main() -> dict[str, Any]:
    """Install the hook, and run the program's top level again."""
    told = json.loads(os.environ[ENVIRONMENT])
    install(theirs=told["theirs"])
    if "file" in told:
        return runpy.run_path(told["file"], run_name="__mp_main__")
    if told["module"].endswith(".__main__"):
        return {}  # multiprocessing leaves those out
    return runpy.run_module(told["module"], run_name="__mp_main__")


if __name__ == "__mp_main__":
    globals().update(become_main())
