"""What the documents say is true: their examples run, and no page is missing."""

from __future__ import annotations

import importlib
import linecache
import pkgutil
import re
import sys
import types
from contextlib import suppress
from pathlib import Path

import pytest

import towpath
from towpath.errors import CODES, TowpathError

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "errors"
BLOCK = re.compile(r"^```python(?P<words>[^\n]*)\n(?P<code>.*?)^```$", re.M | re.S)

# An error that only one room raises is defined there.
for module in pkgutil.walk_packages(towpath.__path__, "towpath."):
    if not module.name.endswith("__main__"):
        with suppress(ImportError):
            importlib.import_module(module.name)


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return the examples of a page, with what stands behind ```python."""
    text = path.read_text("utf-8")
    found = []
    for match in BLOCK.finditer(text):
        # Empty lines in front put the right line numbers into tracebacks.
        lines = "\n" * (text.count("\n", 0, match.start()) + 1)
        found.append((match["words"].strip(), lines + match["code"]))
    return found


def show_source(path: Path) -> None:
    """Let who reads the source of an example's function find only code in a page."""
    text = path.read_text("utf-8")
    lines = ["\n"] * len(text.splitlines())
    for _, code in blocks(path):
        for number, line in enumerate(code.splitlines(keepends=True)):
            lines[number] = line if line.strip() else lines[number]
    linecache.cache[str(path)] = (len(text), None, lines, str(path))


def run(path: Path, code: str, namespace: dict[str, object]) -> None:
    show_source(path)
    # Examples are programs of their own: none of this file's future imports.
    exec(compile(code, str(path), "exec", dont_inherit=True), namespace)


def test_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "readme"}
    for _, code in blocks(ROOT / "README.md"):
        run(ROOT / "README.md", code, namespace)


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name
)
def test_examples_of_a_page_run(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if "DATABASE_URL" in page.read_text("utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres"))
    # Schemas look their names up in the module of the example.
    module = types.ModuleType("examples_of_a_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for _, code in blocks(page):
        run(page, code, vars(module))


def test_every_error_code_has_a_page():
    pages = {path.stem for path in PAGES.glob("TP-*.md")}
    assert set(CODES) == pages


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_names_its_error(code):
    text = (PAGES / f"{code}.md").read_text("utf-8")
    assert text.startswith(f"# {code}: {CODES[code].__name__}\n")


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_example_of_a_page_raises_its_error_and_the_fix_does_not(
    code, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = PAGES / f"{code}.md"
    namespace: dict[str, object] = {"__name__": code}
    for words, text in blocks(page):
        if words == "raises":
            with pytest.raises(TowpathError) as caught:
                run(page, text, namespace)
            assert code == caught.value.code
            assert code in str(caught.value)
        else:
            assert words == ""
            run(page, text, namespace)


def test_change_fragments_are_named_by_their_kind():
    for path in (ROOT / "changes").iterdir():
        assert re.fullmatch(r"[\w-]+\.(added|changed|fixed|removed)\.md", path.name)
        assert path.read_text("utf-8").strip()


def test_links_between_documents_lead_somewhere():
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
