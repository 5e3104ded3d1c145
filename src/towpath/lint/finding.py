"""What lint can find, and what it says when it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake; its section in docs/lint.md tells the rest."""

    code: str
    title: str


RULES: Final = {
    rule.code: rule
    for rule in (
        Rule("L101", "UnreachableNode"),
        Rule("L102", "JoinCannotFire"),
        Rule("L103", "EndlessLoop"),
        Rule("L201", "ParallelWriters"),
        Rule("L202", "FanOutWriters"),
        Rule("L203", "UndeclaredKey"),
        Rule("L204", "AssignedNotReturned"),
        Rule("L301", "DeadKey"),
        Rule("L302", "KeyNeverRead"),
        Rule("L303", "KeyNeverWritten"),
        Rule("L304", "SubgraphWithoutKeys"),
        Rule("L401", "UnknownDestination"),
        Rule("L402", "UndeclaredDestination"),
        Rule("L403", "BranchWithoutMap"),
        Rule("L404", "UnmappedAnswer"),
    )
}
"""Every rule by its code. Codes are never reused."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that lint found in a graph.

    An `error` fails when it is run, a `warning` may, and a `note` says what could
    not be seen or would be better said.
    """

    code: str
    severity: Severity
    message: str
    hint: str
    node: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.code} {self.severity}: {self.message}\n  hint: {self.hint}"
