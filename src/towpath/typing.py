"""Type variables of the public generics.

The defaults (`InputT` is `StateT` unless said otherwise) are for checkers:
before Python 3.13 a plain `TypeVar` cannot carry one at run time, and the
package that can is not worth importing for it. `pad` fills the gap for
`SomeGeneric[State]` at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name: str, **kwargs: Any) -> Any:  # noqa: N802
        """Make a type variable; its default is only seen by checkers."""
        kwargs.pop("default", None)
        return _TypeVar(name, **kwargs)


__all__ = (
    "ContextT",
    "ContextT_contra",
    "InputT",
    "NodeInputT",
    "NodeInputT_contra",
    "OutputT",
    "ResponseT",
    "StateT",
    "StateT_co",
    "StateT_contra",
    "pad",
)

StateT = TypeVar("StateT", bound=Any)
"""The state of a graph: a TypedDict, a dataclass or a pydantic model."""
StateT_co = TypeVar("StateT_co", bound=Any, covariant=True)
StateT_contra = TypeVar("StateT_contra", bound=Any, contravariant=True)

ContextT = TypeVar("ContextT", bound=Any, default=None)
"""What a run is given besides its input: clients, the user, settings."""
ContextT_contra = TypeVar(
    "ContextT_contra", bound=Any, contravariant=True, default=None
)

InputT = TypeVar("InputT", bound=Any, default=StateT)
"""What a run takes."""
OutputT = TypeVar("OutputT", bound=Any, default=StateT)
"""What a run gives."""
NodeInputT = TypeVar("NodeInputT", bound=Any, default=Any)
"""The part of the state that one node reads."""
NodeInputT_contra = TypeVar("NodeInputT_contra", bound=Any, contravariant=True)
ResponseT = TypeVar("ResponseT", default=Any)
"""What a question is answered with."""


def pad(parameters: Any, count: int = 4) -> tuple[Any, ...]:
    """Complete the parameters of `StateGraph[...]` by the defaults.

    The order is state, context, input, output; the last two are the state.
    """
    given = parameters if isinstance(parameters, tuple) else (parameters,)
    defaults = (given[0], None, given[0], given[0])
    return given + defaults[len(given) : count]
