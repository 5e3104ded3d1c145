"""Which classes stored bytes may name.

Bytes name a class by a key of the registry, and the program alone fills it: by
`register`, by the schemas that it compiles (`register_schema`), and with the
types of Towpath itself. A name that is not in it is an error, never an import.

Subclasses of a class that a schema declares may stand where it does. They are
looked up among the classes the program has already defined, when a value or a
name is met that is not known yet.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar, overload

from towpath.checkpoint.serde.event_hooks import emit_serde_event
from towpath.checkpoint.serde.schema import reachable
from towpath.checkpoint.serde.shape import shape_of
from towpath.errors import DeserializationError, SerializationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A class that may be stored: its name, and how its objects are encoded."""

    name: str
    cls: type
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


TypeFinder = Callable[[type], Entry | None]
NameFinder = Callable[[str], Entry | None]


_PLAIN: Final = frozenset({bytes, dict, float, int, list, set, str, tuple})
"""What a class may derive from and is yet not stored as."""


class Registry:
    """Classes by type and by stored name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_type: dict[type, Entry] = {}
        self._by_name: dict[str, Entry] = {}
        self._declared: set[type] = set()
        self._finders: list[tuple[TypeFinder, NameFinder]] = []

    def find(self, by_type: TypeFinder, by_name: NameFinder) -> None:
        """Ask these functions for classes of a package that may be absent."""
        self._finders.append((by_type, by_name))

    def add(self, entry: Entry) -> None:
        """Add an entry. Of two classes with one name, the later is decoded to.

        That is what a notebook needs, where a class is defined again and again.
        """
        with self._lock:
            self._by_type[entry.cls] = entry
            self._by_name[entry.name] = entry

    def add_plain(self, cls: type, name: str | None = None) -> bool:
        """Add a class whose shape is known; tell whether it is one."""
        shape = shape_of(cls)
        if shape is not None:
            self.add(Entry(name or type_name(cls), cls, *shape))
        return shape is not None

    def declare(self, *schemas: Any) -> None:
        """Add every class that the annotations of `schemas` lead to."""
        for cls in reachable(schemas):
            if cls not in self._by_type and self.add_plain(cls):
                self._declared.add(cls)

    def of_type(self, cls: type) -> Entry:
        """Return the entry of a class.

        Raises:
            SerializationError: nobody registered it.
        """
        entry = self._by_type.get(cls) or self._met(cls)
        if entry is None:
            raise unknown_type(cls)
        return entry

    def _met(self, cls: type) -> Entry | None:
        """Look further for a class met for the first time."""
        self._grow(cls.__mro__)
        for by_type, _ in self._finders:
            found = by_type(cls)
            if found is not None:
                self.add(found)
        return self._by_type.get(cls)

    def learn(self, cls: type) -> Entry:
        """As `of_type`, but a class whose shape is known is added when met.

        For storage that does not outlive the program: in another one, the
        class would be unknown when it is read.
        """
        if cls not in self._by_type and self._met(cls) is None:
            self.add_plain(cls)
        return self.of_type(cls)

    def knows(self, cls: type) -> bool:
        """Tell whether a class was registered."""
        return cls in self._by_type

    def of_name(self, name: str) -> Entry:
        """Return the entry of a stored name.

        Raises:
            DeserializationError: nobody registered it.
        """
        entry = self._by_name.get(name)
        if entry is None:
            self._grow(tuple(self._declared))
            entry = self._by_name.get(name) or self._named(name)
        if entry is None:
            refuse_name(name)
        return entry

    def _named(self, name: str) -> Entry | None:
        """Ask the finders for a stored name. It adds no class to be encoded."""
        for _, by_name in self._finders:
            found = by_name(name)
            if found is not None:
                return self._by_name.setdefault(name, found)
        return None

    def _grow(self, classes: tuple[type, ...]) -> None:
        """Declare the subclasses of those of `classes` that a schema declared."""
        for cls in classes:
            if cls in self._declared:
                self.declare(*_subclasses(cls))


def _subclasses(cls: type) -> Iterator[type]:
    # `type.__subclasses__` through the type: an enum's members may shadow it.
    children: list[type] = type.__subclasses__(cls)
    for child in children:
        yield child
        yield from _subclasses(child)


def type_name(cls: type) -> str:
    """Return the name a class is stored under when none is given."""
    return f"{cls.__module__}:{cls.__qualname__}"


_CODE: Final = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(types.GeneratorType, types.ModuleType, type),
)


def unknown_type(cls: type) -> SerializationError:
    """Return the error for a value of a class nobody registered."""
    spelled = f"{cls.__module__}.{cls.__qualname__}"
    if advice := other_way(cls):
        return SerializationError(f"a `{spelled}` has no stored form", hint=advice)
    plain = shape_of(cls) is not None
    call = spelled if plain else f"{spelled}, encode=..., decode=..."
    base = next((base for base in cls.__mro__ if base in _PLAIN), None)
    advice = f", or store a plain {base.__name__}" if base else ""
    return SerializationError(
        f"a `{spelled}` has no stored form",
        hint=f"towpath.checkpoint.serde.register({call}){advice}",
    )


def other_way(cls: type) -> str | None:
    """Say what to do with what nobody could register a form for."""
    if hasattr(cls, "__await__") or hasattr(cls, "add_done_callback"):
        return "store what it comes to: await it, or call its result()"
    if issubclass(cls, _CODE):
        return (
            "keep it out of the state: in the runtime context, in a closure, or in "
            "an UntrackedValue channel"
        )
    return None


def refuse_name(name: str) -> NoReturn:
    """Refuse a stored name that nobody registered, and tell listeners of it.

    Raises:
        DeserializationError: says so (TP-504).
    """
    module, _, own = name.partition(":")
    emit_serde_event({"kind": "blocked", "module": module, "name": own})
    raise DeserializationError(
        f"the stored class {name!r} is not registered in this program",
        hint="declare it in a state schema, or import the module that defines it "
        "and call towpath.checkpoint.serde.register on it",
    )


DEFAULT = Registry()
"""The registry of this process."""


@overload
def register(cls: type[T], *, name: str | None = None) -> type[T]: ...


@overload
def register(
    cls: type[T],
    encode: Callable[[T], Any],
    decode: Callable[[Any], T],
    *,
    name: str | None = None,
) -> type[T]: ...


def register(
    cls: type[T],
    encode: Callable[[T], Any] | None = None,
    decode: Callable[[Any], T] | None = None,
    *,
    name: str | None = None,
) -> type[T]:
    """Let objects of a class be stored, and stored objects be of this class.

    Dataclasses, pydantic models, enums and named tuples need nothing more. For
    any other class, `encode` turns an object into simpler values (any that can
    be stored) and `decode` turns those back; it is given what the bytes say,
    whoever wrote them. `name` is what the bytes will say; it is the module and
    name of the class when left out, so give one to a class that may move.

    >>> class Celsius:
    ...     def __init__(self, degrees: float) -> None:
    ...         self.degrees = degrees
    >>> register(Celsius, encode=lambda c: c.degrees, decode=Celsius).__name__
    'Celsius'

    A class whose shape is known may be decorated: `@register`.

    Raises:
        SerializationError: the class needs `encode` and `decode` (TP-503).
        TypeError: only one of the two was given.
    """
    if (encode is None) != (decode is None):
        raise TypeError("`encode` and `decode` go together")
    if encode is not None and decode is not None:
        DEFAULT.add(Entry(name or type_name(cls), cls, encode, decode))
    elif not DEFAULT.add_plain(cls, name):
        raise unknown_type(cls)
    return cls


def register_schema(*schemas: Any) -> None:
    """Register every class reachable from the annotations of `schemas`."""
    DEFAULT.declare(*schemas)
