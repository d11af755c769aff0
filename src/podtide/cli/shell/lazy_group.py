"""A click group whose commands are imported when they are used.

For --help only the sentence beside each command is needed; a test ensures that it equals the command's own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from podtide.core.similar_keys import near_miss

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """`lazy` maps a command's name to its place (`module:attribute`) and its sentence of help."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without importing anything."""
        del ctx
        return sorted(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        del ctx
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names; of an unknown one, say what was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = near_miss(args[0], self.lazy)
            if meant is None:
                raise
            words = f"{error.message.removesuffix('.')}: did you mean '{meant}'?"
            raise click.UsageError(words, error.ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands that a shell offers, without importing them, and the group's options."""
        from click.shell_completion import CompletionItem as Item  # noqa: PLC0415 - needed only at the press of a key

        offered = [
            Item(name, help=sentence)
            for name, (_, sentence) in sorted(self.lazy.items())
            if name.startswith(incomplete)
        ]
        return offered + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for --help from the sentences."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in sorted(self.lazy.items())])
