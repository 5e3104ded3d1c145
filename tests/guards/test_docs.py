"""What the documents say is true: their examples run, and no page is missing."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import towpath
from towpath.cli.app import program
from towpath.errors import CODES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = DOCS / "errors"
sys.path.insert(0, str(ROOT / "tools"))

import pages  # noqa: E402

ALL = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
STORIES = [[ROOT / "README.md"], *pages.stories()]

# An error that only one room raises is defined there.
for module in pkgutil.walk_packages(towpath.__path__, "towpath."):
    if not module.name.endswith("__main__"):
        with suppress(ImportError):
            importlib.import_module(module.name)


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """An empty folder, and a module of its own for what pages define."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "examples_of_a_page", None)
    return pages.Stage()


def name(of: list[Path]) -> str:
    page = of[0] if len(of) == 1 else of[0].parent
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=name)
def test_what_a_page_shows_is_so(story, stage, monkeypatch, request):
    if any("DATABASE_URL" in page.read_text("utf-8") for page in story):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres"))
    stale = []
    for page in story:
        stage.raised.clear()
        for file, svg in stage.play(page):
            if not file.exists() or file.read_text("utf-8") != svg:
                stale.append(file.name)
        if page.parent == PAGES:
            assert {page.stem} >= {error.code for error in stage.raised}
            assert all(page.stem in str(error) for error in stage.raised)
    assert stale == [], "draw them anew: make pictures"


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_that_can_be_run_is(page):
    text = page.read_text("utf-8")
    assert [] == re.findall(r"^[ \t]+```.*", text, re.M), "not found by tools/pages.py"
    for piece in pages.pieces(page):
        known = {"python", "console", "draw", "toml", *pages.NOT_RUN}
        assert piece.language in known, f"{piece}: is it run? why not?"
        assert piece.flags <= {"raises"}, piece
        assert piece.language != "py" or page.name in pages.PROGRAMS, piece


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_not_run_are_there_with_their_options(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for piece in pages.pieces(page):
        if piece.language not in ("sh", "text", "console"):
            continue
        lines = piece.code.replace("\\\n", " ")
        for name, rest in re.findall(r"^(?:\$ )?towpath (\w+)(.*)", lines, re.M):
            assert name in program.commands, piece
            known = {word for one in program.commands[name].params for word in one.opts}
            used = set(re.findall(r"(?<!\S)--[a-z-]+", rest.partition("#")[0]))
            assert used <= known | {"--help"}, f"{piece}: {name} {used - known}"
        for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", lines, re.M):
            assert target in targets, f"{piece}: make {target}"


def test_what_is_imported_on_pages_is_in_the_reference():
    listed = re.findall(
        r"^::: (towpath[\w.]*)$",
        "\n".join(
            page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md")
        ),
        re.M,
    )
    for page in ALL:
        text = "\n".join(piece.code for piece in pages.pieces(page))
        for module in re.findall(r"^\s*from (towpath\.[\w.]+) import", text, re.M):
            assert any(
                f"{one}.".startswith(f"{module}.") or f"{module}.".startswith(f"{one}.")
                for one in listed
            ), f"{page.name} imports from {module}"


def test_every_guarantee_names_the_tests_that_prove_it():
    rows = re.findall(r"^\| .*\|$", (DOCS / "guarantees.md").read_text("utf-8"), re.M)
    proven = [row for row in rows if not row.startswith("| we guarantee")]
    assert len(proven) > 20
    for row in proven:
        files = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", row.rpartition(" | ")[2])
        assert files, row
        assert all("def test_" in (ROOT / file).read_text("utf-8") for file in files)


def test_every_error_code_has_a_page():
    found = {path.stem for path in PAGES.glob("TP-*.md")}
    assert set(CODES) == found


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_names_its_error(code):
    text = (PAGES / f"{code}.md").read_text("utf-8")
    assert text.startswith(f"# {code}: {CODES[code].__name__}\n")


def test_change_fragments_are_named_by_their_kind():
    for path in (ROOT / "changes").iterdir():
        assert re.fullmatch(r"[\w-]+\.(added|changed|fixed|removed)\.md", path.name)
        assert path.read_text("utf-8").strip()


def anchors(page: Path) -> set[str]:
    """Return what a link may name after `#` in a page, here and on GitHub."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in kept}


def test_links_between_documents_lead_somewhere():
    for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_site_loads_nothing_from_elsewhere():
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "  font: false\n" in settings
    assert "http" not in settings
    for page in DOCS.rglob("*.md"):
        for language in ("mermaid", "math"):
            assert f"```{language}" not in page.read_text("utf-8"), page
        assert not re.search(r"!\[[^\]]*\]\(https?:", page.read_text("utf-8")), page


def test_no_picture_is_left_over():
    shown = "\n".join(page.read_text("utf-8") for page in ALL)
    for file in DOCS.rglob("*.svg"):
        assert re.search(rf"[(/]{re.escape(file.name)}\)", shown), file
