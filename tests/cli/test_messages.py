"""What goes wrong is one clear line, in the words of the terminal."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from polars.exceptions import PanicException

from pres.cli import commands
from pres.cli.commands import app
from pres.cli.console import in_the_terminal, show_warning, speak_as
from tests.cli.process import run
from tests.waiting import PATIENCE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "--epoch", "3"], "pres train: no option --epoch. Did you mean --epochs?"),
        (["datasets", "--qqq"], "pres datasets: no option --qqq."),
        (["trian"], "pres: no such command 'trian'. Did you mean 'train'?"),
        (["evaluate"], "pres evaluate: missing argument 'run'."),
        (["datasets", "more"], "pres datasets: got unexpected extra argument(s) (more)"),
        (["train", "x", "--model", "tgm"], "pres train: invalid value for '--model': 'tgm' is not one of"),
        (["predict", "a", "b", "--src"], "pres predict: option '--src' requires an argument."),
        (["theory", "distanc"], "pres theory: no such command 'distanc'. Did you mean 'distance'?"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(says)


def test_no_arguments_show_the_help() -> None:
    for arguments in ([], ["theory"]):
        done = run(*arguments)
        assert "Usage: pres" in done.stdout and done.stderr.strip() == ""


def test_a_reader_who_leaves_ends_the_command_quietly() -> None:
    command = f"{sys.executable} -m pres datasets | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert len(done.stdout.splitlines()) == 1 and done.stderr == ""


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_an_early_interrupt_is_one_line(module: str, tmp_path: Path) -> None:
    """Ctrl-C while a module is imported."""
    program = (
        "import builtins, signal, sys\n"
        "imported = builtins.__import__\n"
        "def interrupted(name, *more, **further):\n"
        f"    if name == {module!r}:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return imported(name, *more, **further)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pres.cli import main\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv = ['pres', 'diagnose', 'synthetic']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped.\n")


def test_options_are_spelled_as_in_the_terminal() -> None:
    commands = typer.main.get_command(app)
    speak_as(commands.commands["diagnose"])  # type: ignore[attr-defined]
    python = "Pass header=False, or name t='ts' and categories=… (bipartite=True, memory_dim=8, max_t=3)."
    terminal = "Pass --no-header, or name --time ts and --category … (--bipartite, memory_dim=8, max_t=3)."
    assert in_the_terminal(python) == terminal
    speak_as(commands.commands["predict"])  # type: ignore[attr-defined]
    assert in_the_terminal("use unknown='new'.") == "use --new."
    speak_as(commands)
    assert in_the_terminal(python) == python


def test_a_file_without_a_header_is_told_of_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("\n".join(f"{i % 7},{i % 3},{i}" for i in range(60)))
    done = run("diagnose", path, "--src", "user")
    assert done.returncode == 1 and "--no-header" in done.stderr and "header=False" not in done.stderr


def test_other_warnings_stay_python_s(capsys: pytest.CaptureFixture[str]) -> None:
    show_warning(UserWarning("strange"), UserWarning, "file.py", 3)
    assert "file.py:3: UserWarning: strange" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["diagnose", r"x\[/bold].csv"], r"x\[/bold].csv: no such file."),
        (["diagnose", "[bold]:smile:[/].csv"], "[bold]:smile:[/].csv: no such file."),
        (["diagnose", "a\x1b[31m\n.csv"], r"a\x1b[31m .csv: no such file."),
        (["diagnose", "~nouser/a.csv"], "~nouser/a.csv: there is no such user. Write the folder out."),
        (["evaluate", "a" * 300], "a" * 300),
        (["diagnose", "a" * 300 + ".csv"], f"{'a' * 300}.csv cannot be read: file name too long."),
        (["train", "x", "--config", "deep.json"], "deep.json cannot be read: maximum recursion depth"),
        (["train", "x", "--epochs", "9" * 12], "--epochs 999999999999: input should be less than or equal"),
        (["store", "synthetic", "--out", "s", "--num-events", "9" * 30], "--num-events 999999999999999999"),
    ],
)
def test_names_and_numbers_that_nobody_foresaw_are_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.json").write_text('{"a":' + "[" * 100_000)
    code, lines = told(arguments)
    assert code == 1 and len(lines) == 1 and lines[0].startswith(f"error: {says}")


def told(arguments: list[str]) -> tuple[int, list[str]]:
    """The exit code of a command that is run in this process, and the lines of stderr."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return commands.run(arguments), said.getvalue().splitlines()


def test_an_error_that_nobody_foresaw_is_one_line_and_with_debug_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(error: BaseException) -> None:
        def catalogue() -> None:
            raise error

        monkeypatch.setattr("pres.data.catalogue", catalogue)

    for error, line in (
        (
            ZeroDivisionError("by\n[zero]"),
            "unexpected ZeroDivisionError: by. --debug shows",
        ),
        (OSError(5, "Input/output error", "a.csv"), "a.csv: input/output error."),
        (MemoryError(), "there is not enough memory. Take fewer events (--first), or a machine with more."),
        (
            PanicException("out of range"),
            "unexpected PanicException: out of range. --debug",
        ),
    ):
        fails(error)
        code, lines = told(["datasets"])
        assert code == 1 and len(lines) == 1 and lines[0].startswith(f"error: {line}")
        with pytest.raises(type(error)):
            commands.run(["datasets", "--debug"])
