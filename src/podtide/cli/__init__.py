"""The command line: one module or package per command, and the only place that puts programs together.

Commands that run until a signal stops them are in `programs`, those that come and go with an installation in
`installation`. What commands share is in `options`, `connections`, `output` and `observed`; `shell` is what makes them
one program. A command is imported when it is used, so `podtide --help` costs no more than click itself.
"""

import sys

import click

from podtide import __version__
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cli.shell.lazy_group import LazyGroup
from podtide.cli.shell.program_name import complete_variable, shown_name
from podtide.core.errors import FixError, PodtideError

_RENAMED_OPTIONS = {"--server": "--allocator", "--min-free": "--buffer"}
"""Those of earlier releases, with what they are called now."""


@click.group(
    cls=LazyGroup,
    lazy={
        "agent": (
            "podtide.cli.programs.agent:agent",
            "Run the agent of a node: keep its pool of addresses, and answer the CNI plugin.",
        ),
        "allocator": (
            "podtide.cli.programs.allocator.command:allocator",
            "Serve the subnets in a database over HTTP.",
        ),
        "check": (
            "podtide.cli.check.command:check",
            "Check that no address is given twice, nothing is lost, and all counts add up.",
        ),
        "cluster": (
            "podtide.cli.programs.cluster:cluster",
            "Serve a small cluster of our own over HTTP, as a Kubernetes API server would.",
        ),
        "completion": (
            "podtide.cli.shell.completion:completion",
            "Print the script by which a shell completes commands, options, and names of nodes, subnets and networks.",
        ),
        "controller": (
            "podtide.cli.programs.controller:controller",
            "Run the request controller of a cluster: turn nodes' requests into addresses.",
        ),
        "crds": ("podtide.cli.installation.crds:crds", "Print the CustomResourceDefinitions podtide needs."),
        "dashboard": (
            "podtide.cli.programs.dashboard:dashboard",
            "Serve a live page of a cluster until Ctrl-C: subnets, maps, nodes, decisions, health.",
        ),
        "demo": (
            "podtide.cli.programs.demo:demo",
            "Show podtide at work: a whole cluster in one process, told as a story.",
        ),
        "explain": (
            "podtide.cli.explain.command:explain",
            "Show how podtide decides, with the numbers in the formula.",
        ),
        "forecast": (
            "podtide.cli.forecast.command:forecast",
            "Tell on which day a subnet reaches its thresholds and its capacity.",
        ),
        "ip": (
            "podtide.cli.ip.command:ip",
            "Show whose an address is: its subnet, node and pod, its state, since when, and its past.",
        ),
        "migrate": (
            "podtide.cli.installation.migrate.command:migrate",
            "Show and do what lets podtide take over from another program.",
        ),
        "network": (
            "podtide.cli.network.command:network",
            "Show secondary networks: their slices, pools, reservations and leaks.",
        ),
        "node": (
            "podtide.cli.node.command:node",
            "Show a node's pool, how its request follows from its pods, and its slices of secondary networks.",
        ),
        "placement": (
            "podtide.cli.placement.command:placement",
            "Remove what placement wrote on Nodes: resources of podtide's, and the taint.",
        ),
        "plan": (
            "podtide.cli.plan.command:plan",
            "Show how many addresses a cluster takes at rest and at worst, and whether every pod gets one.",
        ),
        "quarantine": (
            "podtide.cli.quarantine:quarantine",
            "List, and end, the quarantine of what removed nodes had.",
        ),
        "release": (
            "podtide.cli.release.command:release",
            "Free an address of a secondary network, or end the quarantine of one that a removed node had.",
        ),
        "simulate": (
            "podtide.cli.simulate:simulate",
            "Run a whole cluster on virtual time while things go wrong, and see whether anything breaks.",
        ),
        "subnet": (
            "podtide.cli.subnet.command:subnet",
            "Add, list, show, grow, shrink and remove subnets, and see how they were used.",
        ),
        "support-bundle": (
            "podtide.cli.support_bundle.command:support_bundle",
            "Write states, logs, metrics, versions and the result of a check into one file, without secrets.",
        ),
        "top": (
            "podtide.cli.top.command:top",
            "Show how full the subnets are and how the nodes do, worst first.",
        ),
        "uninstall": (
            "podtide.cli.installation.uninstall.command:uninstall",
            "Remove podtide from a cluster: from its nodes, and every object of it.",
        ),
        "uninstall-cni": (
            "podtide.cli.installation.uninstall_cni:uninstall_cni",
            "Remove what the agent installed on this node: the network, the plugin, and the bridge if it has one.",
        ),
        "wait": (
            "podtide.cli.programs.wait:wait",
            "Do nothing until SIGTERM or SIGINT, and then end at once.",
        ),
        "why": ("podtide.cli.why.command:why", "Explain why a pod has its address, or has none."),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="podtide")
def podtide() -> None:
    """Pod IP addresses for Kubernetes clusters whose subnets are scarce."""


def main() -> None:
    """Run the command. An error is one line on stderr: exit status 2 if the input must change, 130 after Ctrl-C, else 1."""
    try:
        sys.exit(
            podtide.main(prog_name=shown_name(), complete_var=complete_variable(), standalone_mode=False)
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(ExitStatus.BAD_INPUT)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else shown_name()
        _fail(f"{_words(error)} See `{command} --help`.", ExitStatus.BAD_INPUT)
    except click.ClickException as error:
        _fail(error.format_message(), ExitStatus.BAD_INPUT)
    except click.Abort:
        _fail("interrupted", ExitStatus.INTERRUPTED)
    except FixError as error:
        _fail(str(error), ExitStatus.BAD_INPUT)
    except PodtideError as error:
        _fail(str(error), ExitStatus.FAILED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader closed the pipe, such as head(1): print no error
    except OSError as error:
        sys.stdout = None  # else Python would try again to flush the rest of the output at exit
        _fail(f"cannot write the answer: {error.strerror}", ExitStatus.FAILED)


def _words(error: click.UsageError) -> str:
    """The error, with the new name of an option that was renamed, where the command has it."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        new = _RENAMED_OPTIONS.get(error.option_name)
        if any(new in option.opts for option in error.ctx.command.params):
            return f"{error.message} It is called {new} now."
    words = " ".join(error.format_message().split())
    return words if words.endswith((".", "?", "!")) else f"{words}."


def _fail(words: str, status: ExitStatus) -> None:
    click.echo(f"podtide: {words}", err=True)
    sys.exit(status)
