"""What the source of a function says about what it returns, and where it goes.

Nothing is guessed. What a function returns is followed through names that are only
assigned, and through `if` expressions; names are looked up in its globals and its
closure. Anything else makes the answer *open*: the function may return other things
than those that were seen. A function whose source is not there is open altogether.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import linecache
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from towpath.lint.assigned import Touched, touched
from towpath.plan.code import codes
from towpath.types import Command, Send, interrupt

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

UNKNOWN: Final = object()
"""What a name or an expression stands for that cannot be told."""
DEPTH_MAX: Final = 6
TARGETED: Final = (
    ast.AugAssign, ast.For, ast.AsyncFor, ast.NamedExpr, ast.comprehension
)  # fmt: skip


@dataclass(slots=True)
class Reading:
    """What is known of a function.

    `updates` has the keys of each update it returns; `open_updates` says that there
    may be other updates, `open_routes` that it may go to other nodes than `gotos`.
    `answers` are what a path function returns, `open_answers` that there may be
    others. `fans` are nodes that several `Send`s of one return may go to. `read` are
    the keys it reads of its state, None if that cannot be told, `touched` those that
    it assigns or changes in place. `leaves` says that it may command the graph around
    its own.
    """

    updates: list[frozenset[str]] = field(default_factory=list)
    open_updates: bool = False
    gotos: set[str] = field(default_factory=set)
    open_routes: bool = False
    answers: set[Any] = field(default_factory=set)
    open_answers: bool = False
    several: bool = False
    fans: set[str] = field(default_factory=set)
    read: frozenset[str] | None = None
    leaves: bool = False
    touched: Touched = field(default_factory=Touched)

    @property
    def sure_keys(self) -> frozenset[str]:
        """The keys that every update has."""
        if self.open_updates or not self.updates:
            return frozenset()
        return frozenset.intersection(*self.updates)

    @property
    def keys(self) -> frozenset[str]:
        """The keys that some update has."""
        return frozenset().union(*self.updates)


def unreadable() -> Reading:
    """Return what is known of a function that cannot be read."""
    return Reading(
        open_updates=True,
        open_routes=True,
        open_answers=True,
        several=True,
        leaves=True,
    )


def reading_of(target: Any) -> Reading:
    """Read a function or a method, as far as that can be done."""
    while isinstance(target, functools.partial) and not target.args:
        target = target.func
    is_bound = inspect.ismethod(target)
    function = target.__func__ if is_bound else target
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        # A decorator may do anything with what the function returns.
        return unreadable()
    node = parsed(function.__code__)
    if node is None:
        return closed_by_hint(unreadable(), function)
    reading = Reader(function, node, int(is_bound)).reading()
    if any(name.startswith("push_") for name in function.__code__.co_names):
        reading.open_updates = True  # `push_message` writes besides
    return closed_by_hint(reading, function)


def closed_by_hint(reading: Reading, function: FunctionType) -> Reading:
    """Believe an annotation that leaves no place for a `Command`."""
    try:
        hint = typing.get_type_hints(function).get("return", UNKNOWN)
    except Exception:  # a name that only exists while type checking
        return reading
    if reading.open_routes and hint is not UNKNOWN and is_update(hint):
        reading.open_routes = reading.leaves = False
    return reading


def is_update(hint: Any) -> bool:
    """Tell whether an annotation stands for updates only."""
    origin = typing.get_origin(hint) or hint
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return all(is_update(part) for part in typing.get_args(hint))
    if origin in (type(None), dict, Mapping) or typing.is_typeddict(origin):
        return True
    is_model = dataclasses.is_dataclass(origin) or hasattr(origin, "model_fields")
    return is_model and origin is not Command


# -- finding the source -------------------------------------------------------


def parsed(code: CodeType) -> Function | None:
    """Return the syntax tree of a function."""
    found = [
        node
        for node in functions_in("".join(linecache.getlines(code.co_filename)))
        if first_line(node) == code.co_firstlineno and name_of(node) == code.co_name
    ]
    if len(found) == 1:
        return found[0]
    places = {place[:4] for place in code.co_positions() if None not in place}
    holding = [
        node
        for node in found
        if places
        and all(holds(node, place) for place in places if place[2] or place[3])
    ]
    return holding[0] if len(holding) == 1 else None


def holds(node: Function, place: tuple[int | None, ...]) -> bool:
    """Tell whether a place in the source is inside a function."""
    line, end_line, column, end_column = place
    assert line is not None
    assert end_line is not None
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    begins = (node.lineno, node.col_offset) <= (line, column or 0)
    return begins and (end_line, end_column or 0) <= (
        node.end_lineno,
        node.end_col_offset,
    )


@lru_cache(maxsize=64)
def functions_in(source: str) -> tuple[Function, ...]:
    """Return every function of a module."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, Function))


def first_line(node: Function) -> int:
    """Return the line that a code object says it begins in."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def name_of(node: Function) -> str:
    """Return the name that a code object has."""
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


# -- reading ------------------------------------------------------------------


class Reader:
    """Reads one function."""

    def __init__(self, function: FunctionType, node: Function, first: int) -> None:
        self.node = node
        self.first = first
        """Which parameter takes the state: not the `self` of a method."""
        self.names = names_of(function)
        self.known: dict[str, list[ast.expr]] = {}
        self.spoilt: set[str] = set()
        self.extra: dict[str, set[str]] = {}
        self.found = Reading()
        arguments = node.args
        self.parameters = {
            argument.arg
            for argument in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                *filter(None, (arguments.vararg, arguments.kwarg)),
            )
        }
        self.spoilt |= self.parameters

    def reading(self) -> Reading:
        """Say what the function does."""
        nodes = list(own_nodes(self.node))
        for node in nodes:
            self.note(node)
        if isinstance(self.node, ast.Lambda):
            self.value(self.node.body)
        else:
            for node in nodes:
                if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                    self.value(node.value)
                elif isinstance(node, ast.YieldFrom):
                    self.open()
            if goes_on(self.node.body):
                self.found.updates.append(frozenset())
        self.found.read = self.keys_read()
        state = self.state()
        if state is not None and state not in self.known:
            self.found.touched = touched(nodes, state)
        return self.found

    def open(self) -> None:
        """Note that something else may be returned."""
        self.found.open_updates = self.found.open_routes = True
        self.found.open_answers = self.found.several = self.found.leaves = True

    def note(self, node: ast.AST) -> None:
        """Keep what a name is assigned, and what makes it unsure."""
        if isinstance(node, ast.Assign) and all(
            isinstance(target, ast.Name) for target in node.targets
        ):
            for target in node.targets:
                assert isinstance(target, ast.Name)
                self.known.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                self.known.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.spoilt.update(node.names)
        else:
            self.note_change(node)

    def note_change(self, node: ast.AST) -> None:
        """Keep what is done to a name after it was assigned."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                key = subscript_of(target)
                if key is not None:
                    self.extra.setdefault(key[0], set()).add(key[1])
                else:
                    self.spoil(target)
        elif isinstance(node, TARGETED):
            self.spoil(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.spoil(node.optional_vars)
        elif isinstance(node, ast.Call):
            # `found.update(...)`, and whoever else gets a hold of the object.
            parts = [*node.args, *(word.value for word in node.keywords)]
            if isinstance(node.func, ast.Attribute):
                parts.append(node.func.value)
            self.spoilt.update(part.id for part in parts if isinstance(part, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = (alias.asname or alias.name for alias in node.names)
            self.spoilt.update(name.partition(".")[0] for name in names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            self.spoilt.update(filter(None, [node.name]))

    def spoil(self, target: ast.AST) -> None:
        """Note that a name may hold what cannot be told."""
        names = (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        self.spoilt.update(names)

    def value(self, node: ast.expr, depth: int = 0) -> None:
        """Note what an expression may be that the function returns."""
        if depth > DEPTH_MAX:
            self.open()
        elif isinstance(node, ast.IfExp):
            self.value(node.body, depth + 1)
            self.value(node.orelse, depth + 1)
        elif isinstance(node, ast.Name) and self.is_local(node.id):
            self.local(node.id, depth)
        elif isinstance(node, ast.Dict):
            self.update(node, set())
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp):
            self.several_values(node, depth)
        else:
            self.constant(node)

    def is_local(self, name: str) -> bool:
        return name in self.known or name in self.spoilt

    def local(self, name: str, depth: int) -> None:
        """Note what a local name may hold."""
        if name in self.spoilt or name not in self.known:
            self.open()
            return
        more = self.extra.get(name, set())
        for value in self.known[name]:
            if isinstance(value, ast.Dict):
                self.update(value, more)
            elif more:
                self.open()
            else:
                self.value(value, depth + 1)

    def update(self, node: ast.Dict, more: set[str]) -> None:
        """Note an update; keys that may be there count as keys of another update."""
        keys, is_open = self.keys_of(node)
        if is_open:
            self.found.open_updates = True
        self.found.updates.append(frozenset(keys))
        if more:
            self.found.updates.append(frozenset(keys | more))
        self.found.open_answers = True

    def keys_of(self, node: ast.Dict) -> tuple[set[str], bool]:
        """The keys of a literal, and whether there may be others."""
        values = [UNKNOWN if key is None else self.told(key) for key in node.keys]
        known = {value for value in values if isinstance(value, str)}
        return known, not all(isinstance(value, str) for value in values)

    def call(self, node: ast.Call) -> None:
        """Note what a call may return."""
        made = self.told(node.func)
        if made is Command:
            self.command(node)
        elif made is Send:
            self.sent(node)
        elif made is dict and not node.args and all(word.arg for word in node.keywords):
            keys = frozenset(word.arg for word in node.keywords if word.arg)
            self.found.updates.append(keys)
            self.found.open_answers = True
        elif made in (str, int, bool, len, repr):
            self.found.open_answers = True
            self.found.updates.append(frozenset())
        else:
            self.open()

    def command(self, node: ast.Call) -> None:
        """Note a `Command`: where it goes and what it updates."""
        words = {word.arg: word.value for word in node.keywords}
        self.found.open_answers = True
        if None in words or node.args:
            self.open()
            return
        graph = words.get("graph")
        if graph is not None and self.told(graph) is not None:
            self.found.leaves = True
            return
        goto = words.get("goto")
        if goto is not None:
            self.goto(goto)
        given = words.get("update")
        if given is None:
            self.found.updates.append(frozenset())
        elif isinstance(given, ast.Dict):
            self.update(given, set())
        else:
            self.found.open_updates = True

    def goto(self, node: ast.expr) -> None:
        """Note where a `Command` goes."""
        if isinstance(node, ast.IfExp):
            self.goto(node.body)
            self.goto(node.orelse)
        elif isinstance(node, ast.List | ast.Tuple):
            for item in node.elts:
                self.goto(item)
        elif isinstance(node, ast.ListComp):
            self.fanned(node)
        elif isinstance(node, ast.Call) and self.told(node.func) is Send:
            self.sent(node)
        elif isinstance(name := self.told(node), str):
            self.found.gotos.add(name)
        elif isinstance(node, ast.Name) and node.id in self.known:
            values = self.known[node.id] if node.id not in self.spoilt else ()
            names = [self.told(value) for value in values]
            self.found.gotos.update(name for name in names if isinstance(name, str))
            if not names or not all(isinstance(name, str) for name in names):
                self.found.open_routes = True
        else:
            self.found.open_routes = True

    def sent(self, node: ast.Call) -> str | None:
        """Note a `Send`; return where it goes."""
        words = {word.arg: word.value for word in node.keywords}
        target = node.args[0] if node.args else words.get("node")
        name = UNKNOWN if target is None else self.told(target)
        if not isinstance(name, str):
            self.found.open_routes = True
            return None
        self.found.gotos.add(name)
        return name

    def fanned(self, node: ast.ListComp | ast.GeneratorExp) -> None:
        """Note a list of `Send`s that may be long."""
        made = node.elt
        self.found.several = True
        if isinstance(made, ast.Call) and self.told(made.func) is Send:
            name = self.sent(made)
            self.found.fans.update(filter(None, [name]))
        else:
            self.open()

    def several_values(
        self,
        node: ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp,
        depth: int,
    ) -> None:
        """Note a list of answers, commands or sends."""
        self.found.several = True
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            self.fanned(node)
            return
        for item in node.elts:
            if isinstance(item, ast.Starred):
                self.open()
            else:
                self.value(item, depth + 1)

    def constant(self, node: ast.expr) -> None:
        """Note an answer, or nothing."""
        value = self.told(node)
        if value is None:
            self.found.updates.append(frozenset())
        elif isinstance(value, str | bool | int):
            self.found.answers.add(value)
            self.found.updates.append(frozenset())
        elif isinstance(node, ast.Compare) or is_negation(node):
            self.found.answers |= {True, False}
            self.found.updates.append(frozenset())
        else:
            self.open()

    def told(self, node: ast.expr) -> Any:
        """What an expression stands for, where that is said outside the function."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and not self.is_local(node.id):
            return self.names.get(node.id, getattr(builtins, node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self.told(node.value)
            # Not of other objects: a property would run.
            if isinstance(owner, ModuleType) or owner is Command:
                return getattr(owner, node.attr, UNKNOWN)
        return UNKNOWN

    def keys_read(self) -> frozenset[str] | None:
        """The keys that are read of the first parameter, if only keys are."""
        state = self.state()
        if state is None:
            return frozenset() if not self.node.args.vararg else None
        found: set[str] = set()
        uses = keyed = 0
        for node in ast.walk(self.node):
            if isinstance(node, ast.Name) and node.id == state:
                uses += 1
            elif (key := key_read(node, state)) is not None:
                found.add(key)
                keyed += 1
        return frozenset(found) if uses == keyed else None

    def state(self) -> str | None:
        """The name of the parameter that takes the state."""
        arguments = [*self.node.args.posonlyargs, *self.node.args.args]
        return arguments[self.first].arg if len(arguments) > self.first else None


def key_read(node: ast.AST, state: str) -> str | None:
    """The key that `state["key"]`, `state.get("key")` or `state.key` reads."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and is_name(node.value, state):
        key = node.slice
    elif isinstance(node, ast.Attribute) and is_name(node.value, state):
        # `state.get("key")` counts with its call.
        return None if node.attr in dir(dict) else node.attr
    elif isinstance(node, ast.Call) and is_get(node.func, state) and node.args:
        key = node.args[0]
    elif isinstance(node, ast.Compare) and is_name(node.comparators[-1], state):
        key = node.left
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    return None


def is_get(node: ast.expr, state: str) -> bool:
    """Tell `state.get`."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "get" and is_name(node.value, state)


def is_negation(node: ast.AST) -> bool:
    """Tell `not x`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def is_name(node: ast.AST, name: str) -> bool:
    """Tell a use of a name."""
    return isinstance(node, ast.Name) and node.id == name


def subscript_of(node: ast.AST) -> tuple[str, str] | None:
    """The name and key of `name["key"]`."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ):
        return node.value.id, node.slice.value
    return None


def goes_on(body: list[ast.stmt]) -> bool:
    """Tell whether a block may come to its end without returning or raising."""
    last = body[-1]
    if isinstance(last, ast.If):
        return not last.orelse or goes_on(last.body) or goes_on(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return goes_on(last.body)
    return not isinstance(last, ast.Return | ast.Raise)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Walk a function without those inside it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, Function | ast.ClassDef):
            continue
        yield node
        yield from own_nodes(node)


def names_of(function: FunctionType) -> dict[str, Any]:
    """What the names mean that a function takes from outside."""
    found = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            found[name] = UNKNOWN
    return found


def asks(target: Any, depth: int = DEPTH_MAX) -> bool:
    """Tell whether a function may ask somebody, itself or through another."""
    function = inspect.unwrap(target) if callable(target) else target
    if not isinstance(function, FunctionType):
        return True
    for code in codes(function.__code__):
        for name, value in mentioned(function, code):
            if value is interrupt or name == "interrupt":
                return True
            if isinstance(value, FunctionType) and value is not function:
                if depth <= 0 or asks(value, depth - 1):
                    return True
            elif inspect.getattr_static(value, "plan_of_graph", None) is not None:
                return True
    return False


def mentioned(function: FunctionType, code: CodeType) -> Iterator[tuple[str, Any]]:
    """The names in a code, with what they mean in its function or a module it names."""
    names = names_of(function)
    values = [names.get(name) for name in code.co_names]
    places = [names, *(vars(one) for one in values if isinstance(one, ModuleType))]
    for name in (*code.co_names, *code.co_freevars):
        for place in places:
            yield name, place.get(name)
