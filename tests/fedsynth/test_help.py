"""Every command explains itself, and so does every argument and option of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from fedsynth.cli import MODULES, SUMMARIES, app, contents
from fedsynth.commands.paragraphs import flowing


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


ROOT = Path(__file__).resolve().parents[2]
ALL = dict(commands(get_command(app)))
LEAVES = [path for path, command in ALL.items() if not hasattr(command, "commands")]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_argument_and_option_has_a_help(path: tuple[str, ...]) -> None:
    command = ALL[path]
    assert command.help, f"`fedsynth {' '.join(path)}` has no help"
    for parameter in command.params:
        described = getattr(parameter, "help", None)
        assert described, f"`fedsynth {' '.join(path)}`: '{parameter.name}' has no help"


def test_paragraphs_flow_and_examples_can_be_copied() -> None:
    """Docstrings are broken at 120 columns; a window of 80 must not show it."""
    text = "First.\n\nA line that\nwas broken.\n\nExample:\n\n  fedsynth run " + "--data some-file.csv " * 5 + "-o out"
    flowed = flowing(text)
    assert "A line that was broken." in flowed
    assert max(map(len, flowed.splitlines())) <= 78
    assert flowed.replace(" \\\n     ", "").endswith("--data some-file.csv " * 5 + "-o out")
    assert any("Approval is by digest" in (command.help or "") for command in ALL.values())


def test_it_is_printed() -> None:
    """In the words of the first argument of the auditor's and of the administrator's command."""
    for path, words in ((["verify"], "certificate.json of a release"), (["node", "approve"], "as the consortium sent")):
        shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).output
        assert words in shown


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_that_can_fail_names_its_exit_codes(path: tuple[str, ...]) -> None:
    if path != ("version",):
        assert "Exit codes:" in (ALL[path].help or "")


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_example_file_that_a_help_names_exists(path: tuple[str, ...]) -> None:
    helps = [ALL[path].help, *(getattr(parameter, "help", None) for parameter in ALL[path].params)]
    for named in re.findall(r"examples/[\w./-]*\w", " ".join(filter(None, helps))):
        assert (ROOT / named).exists(), f"`fedsynth {' '.join(path)} --help` names {named}, which does not exist"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """It is printed without loading any of them."""
    assert list(SUMMARIES) == list(MODULES)
    for name, summary in SUMMARIES.items():
        assert " ".join((ALL[(name,)].help or "").split("\n\n")[0].split()) == summary


def test_help_and_import_load_nothing_heavy() -> None:
    script = (
        "import sys, fedsynth.cli; sys.argv = ['fedsynth', '--help']\n"
        "try: fedsynth.cli.main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'pandas', 'flwr', 'scipy', 'sklearn', 'kubernetes', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_misspelt_command_is_guessed_once() -> None:
    assert CliRunner().invoke(contents(), ["simulat"]).output.count("Did you mean") == 1
