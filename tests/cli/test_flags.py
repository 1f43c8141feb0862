"""Flags generated from settings: their names, types, defaults and help are those of the fields."""

import re
from typing import Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from pres.cli.commands import app
from pres.cli.flags import Commands, generated
from pres.cli.train import train
from pres.settings import Settings, setting
from pres.training.config import TrainConfig
from tests.cli.process import printed


class Toy(Settings):
    """Settings of every kind."""

    batch_size: int = setting(200, "Events of a batch.")
    step_size: int | None = setting(None, "As batch_size unless given; no_field is not one.")
    rate: float = setting(0.5, "How fast.")
    kind: Literal["small", "large"] | None = setting(None, "How large.")
    quiet: bool = setting(False, "Say nothing.")
    own: int = setting(3, "Declared by the command.")
    table: dict[str, int] = setting({}, "No flag can say it.")
    unsaid: int = 4


def toy() -> tuple[typer.Typer, list[dict[str, Any]]]:
    """A command line of two commands, and what the flags of one have said."""
    heard: list[dict[str, Any]] = []
    line = typer.Typer(cls=Commands)

    def set_toys(own: int = 0, *, flags: dict[str, Any]) -> None:
        """Set some."""
        heard.append(flags | {"own": own})

    line.command("set-toys")(generated("set-toys", lambda: Toy, first=("rate",))(set_toys))
    line.command("other")(lambda: None)
    return line, heard


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], {"own": 0}),
        (["--step-size", "7", "--rate", "0.25", "--own", "5"], {"step_size": 7, "rate": 0.25, "own": 5}),
        (["--kind", "large", "--quiet"], {"kind": "large", "quiet": True, "own": 0}),
        (["--no-quiet"], {"quiet": False, "own": 0}),
    ],
)
def test_a_command_gets_the_settings_that_were_given(given: list[str], expected: dict[str, Any]) -> None:
    line, heard = toy()
    done = CliRunner().invoke(line, ["set-toys", *given], catch_exceptions=False)
    assert done.exit_code == 0 and heard == [expected]


@pytest.mark.parametrize(
    "wrong", [["--kind", "huge"], ["--rate", "fast"], ["--unsaid", "1"], ["--table", "1"]]
)
def test_what_a_field_cannot_be_is_refused(wrong: list[str]) -> None:
    line, heard = toy()
    assert CliRunner().invoke(line, ["set-toys", *wrong]).exit_code == 2 and heard == []


def test_help_shows_those_used_first_and_the_rest_apart() -> None:
    line, _ = toy()
    text = CliRunner().invoke(line, ["set-toys", "--help"], terminal_width=120).stdout
    options, advanced = text.split("Advanced")
    assert "--rate" in options and "--own" in options and "--batch-size" not in options
    said = re.sub(r"[│\s]+", " ", advanced)
    assert "As --batch-size unless given; no_field is not one." in said
    assert "Events of a batch. [default: 200]" in said


def test_every_setting_of_a_training_is_a_flag_and_few_come_first() -> None:
    options, rest = printed("train", "--help").split("Advanced")
    shown = set(re.findall(r"(?<=--)[a-z][a-z-]*", options))
    assert len(shown - {"no-pres", "tolerance", "help"}) <= 14
    by_hand = {"smoothing": "pres", "source": "source", "reading": "src", "model_options": "option"}
    for name in TrainConfig.model_fields:
        assert by_hand.get(name, name.replace("_", "-")) in options + rest, name


def test_no_flag_is_made_before_it_is_needed() -> None:
    (command,) = [one.callback for one in app.registered_commands if one.callback is train]
    assert command is not None and "epochs" not in command.__annotations__
