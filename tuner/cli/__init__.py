"""The command line: ``tuner`` and ``python -m tuner``, one file a command."""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from tuner.cli.out import echo
from tuner.core.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, TunerError
from tuner.core.logs import DEFAULT, LEVELS, VARIABLE, written
from tuner.core.shown import shown

COMMANDS = (
    "abtest",
    "answers",
    "ask",
    "bench",
    "check",
    "compare",
    "dataset",
    "drift",
    "evaluate",
    "export",
    "history",
    "init",
    "knobs",
    "nightly",
    "plan",
    "policy",
    "promote",
    "report",
    "resume",
    "run",
    "score",
    "sync",
    "ui",
    "watch",
)
"""Each command; ``tuner run`` is the click command called ``command`` of ``tuner.cli.run``."""


class _Commands(click.Group):
    """Imports a command when it is asked for; what is heavy waits until it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """List the commands."""
        return list(COMMANDS)

    def get_command(  # the arguments are click's
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tuner.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the closest one."""
        from tuner.core.errors import did_you_mean

        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"no such command {name!r}{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="graphrag-tuner", prog_name="tuner")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default=DEFAULT,
    envvar=VARIABLE,
    show_default=True,
    show_envvar=True,
    help="Which log lines, ours and libraries', go to standard error.",
)
@click.pass_context
def tuner(context: click.Context, log_level: str) -> None:
    """Tune GraphRAG retrieval: search parameters in parallel, keep every trial.

    Start with:  tuner run configs/graphrag.yaml
    """
    context.with_resource(written(log_level))


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code.

    0: done; 1: failed; 2: bad input; 3: another nightly job is at work; 10: a night promoted;
    20: drift; 21: an A/B test lost users; 130: interrupted.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:
        echo("error: the working folder was deleted; go to another one", err=True)
        sys.exit(EXIT_BAD_INPUT)
    if not {"", here} & set(sys.path):
        # Retrievers are modules in the folder that one works in: the last one looked into, as a
        # json.py there is not to be taken for Python's.
        sys.path.append("")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A dash that the terminal's encoding lacks is no reason to lose a result.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = tuner.main(arguments, prog_name="tuner", standalone_mode=False)
    except click.exceptions.Abort:
        echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except KeyboardInterrupt:
        echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except click.ClickException as error:
        written = io.StringIO()
        error.show(file=written)
        echo(written.getvalue().strip("\n"), err=True)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of our output left, as `head` does; there is nobody to tell.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # for the interpreter's last flush
        code = 0
    except MemoryError:
        echo("error: this machine's memory is too small for it", err=True)
        code = EXIT_FAILED
    except OSError as error:
        place = f" {error.filename!r}" if error.filename else ""
        echo(f"error: {error.strerror or error}:{place}".rstrip(":"), err=True)
        code = EXIT_FAILED
    except TunerError as error:
        for line in shown(error).strip("\n").split("\n"):
            echo(f"error: {line}", err=True)
        code = error.exit_code
    sys.exit(code if isinstance(code, int) else 0)
