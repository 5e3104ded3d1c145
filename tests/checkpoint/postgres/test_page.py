"""What the page about Postgres shows, works."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "postgres.md"


def test_the_examples_of_the_page_run(postgres, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", postgres)
    namespace = {"__name__": "page"}
    examples = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
    )
    assert 2 == len(examples)
    for code in examples:
        exec(compile(code, str(PAGE), "exec", dont_inherit=True), namespace)
