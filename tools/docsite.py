"""What is done to the pages of `docs` on their way to the site: hooks of mkdocs.

Pages are written so that they read well as files, in an editor or on GitHub. Here

* a file outside of `docs` that a page links to becomes a page of the site;
* pages that mkdocs.yml does not name are put under "More";
* what is meant for tools/pages.py is taken away;
* of a file that a page shows again, in another version, the new lines are marked;
* `<!-- list: errors -->` is replaced by that list, and so are others of `LISTS`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from itertools import pairwise
from os.path import relpath
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
ELSEWHERE: Final = "elsewhere"
"""The folder of the site for files from outside of `docs`."""
UNSOUGHT: Final = "---\nsearch:\n  exclude: true\n---\n"
"""What keeps a page out of the search."""
LINK: Final = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>(?!\w+:|#)[^)\s]+)\)")
FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LIST: Final = re.compile(r"^<!-- list: (\w+) -->$", re.MULTILINE)
DRAW: Final = re.compile(r"^<!-- draw: .*? -->\n", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(
    r'^```python title="(?P<name>[^"]+)"\n(?P<code>.*?)^```$', re.MULTILINE | re.DOTALL
)
WORDS: Final = re.compile(r"^(```\w+) (?:raises|needs=.*|of=.*)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Put what the navigation does not name at its end."""
    named = set(leaves(config.nav))
    found = (page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md")))
    # The pages of errors are reached from their index.
    more = [uri for uri in found if uri not in named and "errors/TP-" not in uri]
    if more:
        config.nav.append({"More": more})
    return config


def leaves(nav: Any) -> Iterator[str]:
    """Yield the pages that a navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(part)


def on_files(files: Files, config: Any) -> Files:
    """Add pages for the files outside of `docs` that pages link to."""
    waiting = [Path(str(file.abs_src_path)) for file in files.documentation_pages()]
    seen: set[Path] = set()
    while waiting:
        page = waiting.pop()
        for target in (target_of(link["target"], page) for link in links(page)):
            if target.is_file() and target not in seen and uri_of(target) not in files:
                seen.add(target)
                added = File.generated(config, uri_of(target), content=as_page(target))
                files.append(added)
                waiting.append(target)
    return files


def links(page: Path) -> Iterator[re.Match[str]]:
    """Yield the links between files of a page."""
    if page.suffix == ".md":
        yield from LINK.finditer(FENCED.sub("", page.read_text("utf-8")))


def target_of(link: str, page: Path) -> Path:
    """Return the file or folder that a link in a page leads to."""
    return (page.parent / link.partition("#")[0]).resolve()


def uri_of(target: Path) -> str:
    """Return where in the site a file is found."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    path = f"{ELSEWHERE}/{target.relative_to(ROOT).as_posix()}"
    return path if target.suffix == ".md" else f"{path}.md"


def as_page(target: Path) -> str:
    """Return the text of a page that shows a file."""
    text = target.read_text("utf-8")
    if target.suffix == ".md":
        return UNSOUGHT + text
    name = target.relative_to(ROOT).as_posix()
    language = {".py": "python", ".toml": "toml"}.get(target.suffix, "text")
    return f"{UNSOUGHT}# {name}\n\n````{language}\n{text}````\n"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Make of a page what the site shows."""
    uri = page.file.src_uri
    origin = DOCS / uri
    if uri.startswith(f"{ELSEWHERE}/"):
        origin = ROOT / uri.removeprefix(f"{ELSEWHERE}/")
    markdown = WORDS.sub(r"\1", DRAW.sub("", markdown))
    markdown = with_news(markdown, origin)
    markdown = LIST.sub(lambda found: LISTS[found[1]](), markdown)
    return LINK.sub(lambda link: relinked(link, origin, uri), markdown)


def with_news(markdown: str, page: Path) -> str:
    """Mark what is new in files that a page shows, or one before it in its folder."""
    earlier = {}
    for other in sorted(page.parent.glob("*.md")) if FILE.search(markdown) else ():
        if other.name < page.name:
            for file in FILE.finditer(other.read_text("utf-8")):
                earlier[file["name"]] = file["code"].splitlines()

    def marked(file: re.Match[str]) -> str:
        old, new = earlier.get(file["name"]), file["code"].splitlines()
        earlier[file["name"]] = new
        return file[0].replace("\n", f"{news(old, new)}\n", 1) if old else file[0]

    return FILE.sub(marked, markdown)


def news(old: list[str], new: list[str]) -> str:
    """Return the option of a block that marks its new lines, unless most are new."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    changed = (
        range(j1, j2) for tag, _, _, j1, j2 in matcher.get_opcodes() if tag != "equal"
    )
    lines = [line + 1 for part in changed for line in part if new[line].strip()]
    few = 0 < len(lines) < len(new) / 2
    return f' hl_lines="{" ".join(map(str, lines))}"' if few else ""


def relinked(link: re.Match[str], origin: Path, uri: str) -> str:
    """Return a link as it is within the site; one to a folder is only its words."""
    target = target_of(link["target"], origin)
    anchor = link["target"].partition("#")[1:]
    if not target.is_relative_to(ROOT) or not target.exists():
        return link[0]  # mkdocs tells what is wrong with it
    if target.is_dir():
        target /= "index.md"
        if not target.is_file():
            return link["words"]
    where = relpath(uri_of(target), str(Path(uri).parent))
    return f"[{link['words']}]({where}{''.join(anchor)})"


def errors() -> str:
    """List the codes of errors, with the first sentence of their pages."""
    rows = ["| code | error | what happened |", "|---|---|---|"]
    for page in sorted((DOCS / "errors").glob("TP-*.md")):
        heading, _, rest = page.read_text("utf-8").partition("\n")
        code, name = heading.removeprefix("# ").split(": ")
        first = re.split(r"\.(?:\s|$)", rest.strip().partition("\n\n")[0])[0]
        told = " ".join(first.split()).replace("|", "\\|")
        rows.append(f"| [{code}]({page.name}) | `{name}` | {told}. |")
    return "\n".join(rows)


def commands() -> str:
    """List the commands of `towpath` with their options."""
    import click

    from towpath.cli.app import program

    parts = []
    for name, command in sorted(program.commands.items()):
        context = click.Context(command, info_name=f"towpath {name}")
        usage = command.get_usage(context).removeprefix("Usage: ")
        told = re.sub(r"\n(?!\n)", " ", (command.help or "").replace("\b", ""))
        parts += [
            f"## {name}",
            f"```text\n{usage}\n```",
            told,
            options(command, context),
        ]
    return "\n\n".join(parts)


def options(command: Any, context: Any) -> str:
    """List the options of a command."""
    rows = ["| option | what it does |", "|---|---|"]
    records = (param.get_help_record(context) for param in command.get_params(context))
    for names, told in filter(None, records):
        words = " ".join(told.split()).replace("|", "\\|")
        if words:
            rows.append(f"| `{names}` | {words} |")
    return "\n".join(rows)


def rules() -> str:
    """List the rules of `lint`."""
    from towpath.lint import RULES

    rows = ["| code | rule |", "|---|---|"]
    for rule in RULES.values():
        anchor = f"{rule.code}-{rule.title}".lower()
        rows.append(f"| [{rule.code}](../lint.md#{anchor}) | {rule.title} |")
    return "\n".join(rows)


def switches() -> str:
    """List the fields of `Semantics`, with both presets and the reason of each."""
    from towpath.semantics import LANGGRAPH, NATIVE

    rows = ["| field | `NATIVE` | `LANGGRAPH` | why |", "|---|---|---|---|"]
    body = class_body(ROOT / "src/towpath/semantics.py", "Semantics")
    for field, reason in pairwise(body):
        match field, reason:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(told))),
            ):
                values = (repr(getattr(one, name)) for one in (NATIVE, LANGGRAPH))
                shown = " | ".join(f"`{value}`" for value in values)
                rows.append(f"| `{name}` | {shown} | {named(told)} |")
    return "\n".join(rows)


def named(told: str) -> str:
    """Return a docstring in one line, with LangGraph by its name."""
    return re.sub(r"\b[Tt]he peer\b", "LangGraph", " ".join(told.split()))


def class_body(file: Path, name: str) -> list[ast.stmt]:
    """Return the statements of a class."""
    tree = ast.parse(file.read_text("utf-8"))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return next(node.body for node in classes if node.name == name)


LISTS: Final = {
    "errors": errors,
    "commands": commands,
    "rules": rules,
    "switches": switches,
}
