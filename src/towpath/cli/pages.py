"""The pages about error codes, which are part of the package.

An installed package carries them in `towpath/pages`; a checkout has them where they
are written, in `docs`.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import towpath
from towpath.cli.options import debug_option, json_option
from towpath.cli.output import emit
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem
from towpath.cli.show import print_table
from towpath.lint import RULES

PEERS = {
    "GRAPH_RECURSION_LIMIT": "TP-401",
    "INVALID_CONCURRENT_GRAPH_UPDATE": "TP-203",
    "INVALID_GRAPH_NODE_RETURN_VALUE": "TP-209",
    "MISSING_CHECKPOINTER": "TP-601",
}
"""What the peer calls some of them."""
HEADING = re.compile(r"# (TP-\d+): (\w+)")


def complete_code(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the codes."""
    return [
        CompletionItem(code, help=title)
        for code, title in titles().items()
        if code.startswith(incomplete.upper())
    ]


@click.command()
@click.argument("code", required=False, shell_complete=complete_code)
@json_option
@debug_option
def explain(code: str | None, as_json: bool) -> None:
    """Tell what an error means, with an example and what to do.

    CODE is an error's, such as TP-203, a finding's of `lint`, such as L102, or the
    name of an error's class. Without CODE, all of them are listed.
    """
    if code is None:
        list_codes(as_json)
        return
    found = code_of(code)
    text = page(found)
    if as_json:
        emit(to_json({"code": found, "title": titles()[found], "text": text}))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(shown(text)))
    else:
        emit(text.rstrip("\n"))


def list_codes(as_json: bool) -> None:
    """Print every code with its title."""
    if as_json:
        for code, title in titles().items():
            emit(to_json({"code": code, "title": title}))
    else:
        print_table(("code", "title"), titles().items())


def titles() -> dict[str, str]:
    """Return every code with what it is called.

    The pages tell it: the classes of some are in modules that need an extra.
    """
    found = {}
    for file in folder("errors").iterdir():
        heading = HEADING.match(file.read_text("utf-8"))
        if heading is not None:
            found[heading[1]] = heading[2]
    errors = dict(sorted(found.items()))
    return {**errors, **{rule.code: rule.title for rule in RULES.values()}}


def code_of(word: str) -> str:
    """Return the code that a word means: itself, its number, or its class."""
    known = titles()
    wanted = word.strip("[]").upper()
    bare = wanted.replace("TP", "").lstrip("-")
    for guess in (wanted, f"TP-{bare}"):
        if guess in known:
            return guess
    if wanted in PEERS:
        return PEERS[wanted]
    classes = {title: code for code, title in known.items()}
    for title, code in classes.items():
        if title.lower() == word.lower():
            return code
    near = get_close_matches(wanted if bare.isdigit() else word, [*known, *classes], 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else None
    raise Problem(
        f"there is no code {word!r}", hint=hint or "`towpath explain` lists them"
    )


def page(code: str) -> str:
    """Return the page about a code.

    Raises:
        Problem: the package was installed without its pages.
    """
    rule = RULES.get(code)
    if rule is not None:
        return section(read("lint.md"), code)
    return read(f"errors/{code}.md")


def read(name: str) -> str:
    """Read a page from the package, or from the checkout it is run from."""
    *above, file = name.split("/")
    found = folder(*above).joinpath(file)
    if not found.is_file():
        raise missing(name)
    return found.read_text("utf-8")


def folder(*names: str) -> Traversable:
    """Find a folder of pages in the package, or in the checkout it is run from."""
    checkout = Path(towpath.__file__).resolve().parents[2] / "docs"
    for place in (files("towpath") / "pages", checkout):
        found = place.joinpath(*names)
        if found.is_dir():
            return found
    raise missing("/".join(names) or "docs")


def missing(name: str) -> Problem:
    """Say that a page is not there."""
    return Problem(f"the page {name!r} was not installed", hint="install towpath anew")


def section(text: str, code: str) -> str:
    """Return the part of a page under the heading that begins with a code."""
    found = re.search(rf"^## {code}\b.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section about {code}"
    return found[0].removeprefix("#")


def shown(text: str) -> str:
    """Take what only tests read out of the fences of a page."""
    return text.replace("```python raises", "```python")
