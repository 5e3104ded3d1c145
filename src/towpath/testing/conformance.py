"""What every checkpointer, store and cache must do, as checks for any of them.

For the author of a saver: derive from `SaverConformance`, say how to open an
empty saver, and every check is a test, in both colours.

    class TestMySaver(SaverConformance):
        @contextmanager
        def open(self):
            with MySaver.from_conn_string(...) as saver:
                yield saver

Nothing here needs pytest: `checks` gives the same as plain functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import Any, ClassVar, NamedTuple
from unittest import SkipTest

from towpath.checkpoint.base import BaseCheckpointSaver
from towpath.testing.conformance_colours import Blocking, Looped
from towpath.testing.conformance_retention import RETENTION_CHECKS, RetentionChecks
from towpath.testing.conformance_runs import RUN_CHECKS, RunChecks
from towpath.testing.conformance_saver import SAVER_CHECKS, SaverChecks

Opened = AbstractContextManager[BaseCheckpointSaver[Any]]
Colour = type[Blocking]


_NAMES = (*SAVER_CHECKS, *RETENTION_CHECKS, *RUN_CHECKS)


class Check(NamedTuple):
    """A check of one saver in one colour, ready to run."""

    name: str
    run: Callable[[], None]


def checks(
    open: Callable[[], Opened],
    *,
    colours: Sequence[Colour] = (Blocking, Looped),
) -> Iterator[Check]:
    """Yield every check for the savers that `open` opens, each on a fresh one."""
    for colour in colours:
        for name in _NAMES:
            run = partial(run_check, name, colour, open)
            yield Check(f"{name}[{colour.__name__.lower()}]", run)


def run_check(name: str, colour: Colour, open: Callable[[], Opened]) -> None:
    """Run one check on a saver of its own.

    Raises:
        unittest.SkipTest: it is about what the saver does not declare.
    """
    with open() as saver, closing(colour(saver)) as facade:
        if name in SAVER_CHECKS:
            return getattr(SaverChecks(), name)(facade)  # type: ignore[no-any-return]
        needed = RUN_CHECKS.get(name, "retention")
        if not getattr(saver.capabilities, needed):
            raise SkipTest(f"the saver does not declare `{needed}`")
        several = RunChecks() if name in RUN_CHECKS else RetentionChecks()
        return getattr(several, name)(facade)  # type: ignore[no-any-return]


class SaverConformance:
    """A base for test classes: has a test method for every check and colour."""

    colours: ClassVar[Sequence[Colour]] = (Blocking, Looped)

    def open(self) -> Opened:
        """Return a context manager that gives an empty saver."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for colour in cls.colours:
            for name in _NAMES:
                test = f"test_{name}_{colour.__name__.lower()}"
                setattr(cls, test, _test(name, colour))


def _test(name: str, colour: Colour) -> Callable[[SaverConformance], None]:
    def test(self: SaverConformance) -> None:
        run_check(name, colour, self.open)

    return test
