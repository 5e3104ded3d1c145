"""The command that prints the completion script of a shell."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from towpath.cli.options import debug_option
from towpath.cli.output import emit
from towpath.cli.problem import Problem

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@debug_option
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the completion script of a shell.

    It completes commands, options, graphs, threads and codes.

    For bash: `towpath completion bash >> ~/.bashrc`; for zsh the same with ~/.zshrc;
    for fish `towpath completion fish > ~/.config/fish/completions/towpath.fish`.
    """
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(chosen)
    if kind is None or chosen not in SHELLS:
        raise Problem(
            f"which shell? {chosen!r} is none of them" if chosen else "which shell?",
            hint=f"`towpath completion SHELL`, with {', '.join(SHELLS)}",
        )
    emit(kind(ctx.find_root().command, {}, "towpath", "_TOWPATH_COMPLETE").source())
