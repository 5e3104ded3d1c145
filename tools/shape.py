"""Check the shape of a package: sizes, parameters, twins and duplicates.

    python tools/shape.py src/towpath

Limits keep every piece small enough to read at one go. Twins are a function
`name` and its async counterpart `aname` in one module or class: the work behind
both is written once, so that one of them is a few lines that hand over to the other,
or both to a third; and no two functions of the package may have one body. Cyclomatic
complexity is ruff's to count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 8
TWIN_LINES = 8
DUPLICATE_LINES = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef


def length(node: Function) -> int:
    """Count the lines of a function, signature and docstring with it."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def body(node: Function) -> list[ast.stmt]:
    """Return the statements of a function without its docstring."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def body_length(node: Function) -> int:
    """Count the lines between the docstring and the end."""
    assert node.end_lineno is not None
    return node.end_lineno - body(node)[0].lineno + 1 if body(node) else 0


def parameters(node: Function) -> int:
    """Count what a caller passes: not `self`, nor the options of a public verb.

    The keyword-only options of public verbs and constructors are the peer's,
    and every one of them has a name where it is used.
    """
    args = node.args
    named = [*args.posonlyargs, *args.args]
    bound = bool(named) and named[0].arg in {"self", "cls"}
    public = not node.name.startswith("_") or node.name == "__init__"
    return len(named) - bound + (0 if public else len(args.kwonlyargs))


def functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function with the name of the class around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield owner, node
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        yield from functions(node, inner)


def module_faults(path: Path, text: str) -> Iterator[str]:
    """Yield what breaks a limit in one module."""
    if (count := text.count("\n")) > MODULE_LINES:
        yield f"{path}: {count} lines, at most {MODULE_LINES}"
    found = list(functions(ast.parse(text)))
    by_name = {(owner, node.name): node for owner, node in found}
    for owner, node in found:
        where = f"{path}:{node.lineno}: {node.name}"
        if length(node) > FUNCTION_LINES:
            yield f"{where}: {length(node)} lines, at most {FUNCTION_LINES}"
        if parameters(node) > PARAMETERS:
            yield f"{where}: {parameters(node)} parameters, at most {PARAMETERS}"
        twin = by_name.get((owner, f"a{node.name}"))
        if twin and min(body_length(node), body_length(twin)) > TWIN_LINES:
            yield f"{where}: twins, both with bodies over {TWIN_LINES} lines"


def duplicates(texts: dict[Path, str]) -> Iterator[str]:
    """Yield every function whose body stands elsewhere already."""
    first: dict[str, str] = {}
    for path, text in texts.items():
        for _, node in functions(ast.parse(text)):
            where = f"{path}:{node.lineno}: {node.name}"
            if body_length(node) >= DUPLICATE_LINES:
                key = "\n".join(ast.dump(statement) for statement in body(node))
                if (other := first.setdefault(key, where)) != where:
                    yield f"{where}: has the body of {other}"


def main(roots: list[str]) -> int:
    """Print every fault below `roots`; return 1 when there are some."""
    paths = sorted(path for root in roots for path in Path(root).rglob("*.py"))
    texts = {path: path.read_text("utf-8") for path in paths}
    found = [fault for path in paths for fault in module_faults(path, texts[path])]
    found += duplicates(texts)
    print("\n".join(found) or f"shape: {len(paths)} modules within the limits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["src"]))
