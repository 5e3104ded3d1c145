"""`langgraph.typing`: the type variables, with their defaults at run time too.

Classes of other packages put them after type variables that have a default.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

__all__ = (
    "ContextT",
    "ContextT_contra",
    "InputT",
    "NodeInputT",
    "NodeInputT_contra",
    "OutputT",
    "StateT",
    "StateT_co",
    "StateT_contra",
)

StateT = TypeVar("StateT", bound=Any)
StateT_co = TypeVar("StateT_co", bound=Any, covariant=True)
StateT_contra = TypeVar("StateT_contra", bound=Any, contravariant=True)
ContextT = TypeVar("ContextT", bound=Any, default=None)
ContextT_contra = TypeVar(
    "ContextT_contra", bound=Any, contravariant=True, default=None
)
InputT = TypeVar("InputT", bound=Any, default=StateT)
OutputT = TypeVar("OutputT", bound=Any, default=StateT)
NodeInputT = TypeVar("NodeInputT", bound=Any)
NodeInputT_contra = TypeVar("NodeInputT_contra", bound=Any, contravariant=True)
