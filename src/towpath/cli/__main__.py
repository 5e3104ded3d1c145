"""`python -m towpath.cli` is the `towpath` program."""

from __future__ import annotations

from towpath.cli import main

if __name__ == "__main__":
    main()
