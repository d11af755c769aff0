"""`podtide completion`: the script by which a shell completes podtide's commands, options and names."""

import click

from podtide.cli.shell.program_name import complete_variable, program_name

_SHELLS = ("bash", "zsh", "fish")
_WHOLE_SENTENCES = ('string split ","', 'string split --max 1 ","')
"""In fish's script of click's, which cuts a sentence of help at its first comma."""


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(*, shell: str) -> None:
    """Print the script by which a shell completes commands, options, and names of nodes, subnets and networks.

    For bash: source <(podtide completion bash). For zsh the same, after compinit. For fish: podtide completion fish |
    source. Put the line into the shell's start-up file to keep it.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - needed by this command alone

    from podtide.cli import podtide  # noqa: PLC0415 - which imports this module lazily

    chosen = get_completion_class(shell)
    assert chosen is not None  # click has all three
    name = program_name()
    script = chosen(podtide, {}, name, complete_variable())
    # Not `script.source()`: of bash it would ask the version of whichever one is in PATH, and warn.
    click.echo(script.source_template.replace(*_WHOLE_SENTENCES) % script.source_vars())
