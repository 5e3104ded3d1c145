"""What is done to pages for the site, where what builds it is installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docsite  # noqa: E402
from towpath.cli.app import program  # noqa: E402
from towpath.semantics import Semantics  # noqa: E402


def shown(markdown: str, uri: str = "concepts/page.md") -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=uri))
    return docsite.on_page_markdown(markdown, page=page)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../cli.md#running)", "[a](../cli.md#running)"),
        ("[a](../../README.md)", "[a](../elsewhere/README.md)"),
        ("[a](../../Makefile)", "[a](../elsewhere/Makefile.md)"),
        ("[a](../errors)", "[a](../errors/index.md)"),
        ("[a](../../changes)", "a"),
        ("[a](https://example.org)", "[a](https://example.org)"),
    ],
)
def test_links_lead_to_pages_of_the_site(link, expected):
    assert expected == shown(link)


def test_links_of_files_from_elsewhere_lead_back():
    back = shown("[a](docs/cli.md)", "elsewhere/README.md")
    assert "[a](../cli.md)" == back


def test_what_is_meant_for_playing_is_not_shown():
    page = "```python raises\n1\n```\n<!-- draw: x\n -->\n![a](b.svg)\n"
    assert "```python\n1\n```\n![a](b.svg)\n" == shown(page)


def test_new_lines_of_a_file_that_is_shown_again_are_marked():
    def page(code):
        return f'```python title="a.py"\n{code}```\n'

    old, new = "a\nb\nc\nd\ne\n", "a\nb\nnew\nd\ne\n"
    assert page(old) + page(new).replace('"a.py"', '"a.py" hl_lines="3"') == shown(
        page(old) + page(new)
    )


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("commands", set(program.commands)),
        ("switches", set(Semantics.__dataclass_fields__)),
        ("errors", {page.stem for page in (ROOT / "docs/errors").glob("TP-*.md")}),
    ],
)
def test_lists_are_complete(listed, names):
    found = shown(f"<!-- list: {listed} -->")
    assert names <= set(re.findall(r"[\w-]+", found))


def test_every_page_is_found_by_the_navigation():
    config = docsite.on_config(SimpleNamespace(nav=["index.md"]))
    assert "cli.md" in config.nav[-1]["More"]
    assert not any("TP-" in uri for uri in docsite.leaves(config.nav))
