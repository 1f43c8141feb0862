"""`pres train`: a model from a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pres.cli.console import plain, print_json, say, say_probe, stderr, stdout, stoppable
from pres.cli.flags import generated
from pres.cli.model import AnyModel
from pres.cli.source import SOURCE_HELP, AsJson, Debug, open_events, reads_events
from pres.errors import OptionError

if TYPE_CHECKING:
    from pres.data.stream import EventStream
    from pres.settings import Settings
    from pres.training.checkpoint import EpochResult

FIRST = ("preset", "epochs", "seed", "device")
# What a run to go on with has settled, beside the settings that may not change.
SETTLED = ("model", "option", "pres", "published", "pres_option", "config", "out", "tolerance", "batch_size")


def _settings() -> type[Settings]:
    from pres.training.config import TrainConfig

    return TrainConfig


@generated("train", _settings, first=FIRST)
@reads_events
def train(
    source: Annotated[str | None, typer.Argument(help=SOURCE_HELP)] = None,
    model: AnyModel = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="An option of the model, as memory_dim=64 or cell=scan; repeatable."
        ),
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            help="Events between two updates of memory, or auto: the most within --tolerance.  "
            "\\[default: 200]"
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="With --batch-size auto: the points of AP that larger batches may lose.  \\[default: 0.5]",
            rich_help_panel="Advanced",
        ),
    ] = None,
    pres: Annotated[
        bool | None,
        typer.Option("--pres/--no-pres", help="Smooth memory: PRES with our defaults.  \\[default: no]"),
    ] = None,
    published: Annotated[
        Literal["equations", "algorithm"] | None,
        typer.Option(
            help="Smooth memory: PRES as the paper's equations, or its Algorithm 2, have it.",
            rich_help_panel="Advanced",
        ),
    ] = None,
    pres_option: Annotated[
        list[str] | None,
        typer.Option(help="An option of PRES, as beta=0.2; repeatable.", rich_help_panel="Advanced"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings from a .toml or .json file; flags override them.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the run in this new folder.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder, from where it stopped.")
    ] = None,
    checkpoint_minutes: Annotated[
        float,
        typer.Option(
            help="Keep the state inside an epoch, too, every so many minutes.", rich_help_panel="Advanced"
        ),
    ] = 10.0,
    tensorboard: Annotated[
        bool, typer.Option(help="Also log for TensorBoard, inside --out.", rich_help_panel="Advanced")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
    flags: dict[str, Any],
) -> None:
    """Train a memory model to predict links; weights are chosen on validation, the test part is reported."""
    given = locals()
    from pres.models.registry import build_model
    from pres.training import fit
    from pres.training.batch_size import check_tolerance
    from pres.training.config import TrainConfig, read_config
    from pres.training.folder import RunFolder
    from pres.training.trainer import usable_device

    settings = {} if config is None else read_config(config)
    named = {"source": source, "model": model}
    settings |= flags | {name: value for name, value in named.items() if value is not None}
    if batch_size is not None:
        settings["batch_size"] = _count_or_auto(batch_size)
    auto = settings.get("batch_size") == "auto"
    in_file = settings.pop("tolerance", None)
    if tolerance is None and (auto or batch_size is None):  # a flag's number of events goes before auto
        tolerance = in_file
    check_tolerance(tolerance, auto)
    if reading:
        settings["reading"] = _table(settings, "reading") | reading
    if option:
        settings["model_options"] = _table(settings, "model_options") | named_values(option, "option")
    settings |= _smoothing(settings, pres, published, named_values(pres_option or [], "pres-option"))
    if resume is not None:
        _check_resume(given | flags, reading)
        settings, out = _settings_of_a_run(resume, source) | settings, resume
    elif settings.get("source") is None:
        raise OptionError("say what to train on: a file, a dataset's name, or --config with a source.")
    elif settings.get("preset") == "large":
        settings["model_options"] = {"cell": "scan"} | _table(settings, "model_options")
    known = {name: value for name, value in settings.items() if value != "auto"}
    chosen = TrainConfig.of(known, "pres train" if config is None else str(config))
    usable_device(device := chosen.device or "cpu")  # what cannot be is said before anything is read
    if out is not None and resume is None:
        RunFolder(out).check_free()
    events = open_events(chosen.source, chosen.reading) if resume is None else _again(resume, source)
    made = build_model(chosen.model, events, chosen.model_options, chosen.seed, chosen.protocol)
    made.to(device)
    if resume is None:
        chosen = TrainConfig.of(known | _batches(made, events, settings, tolerance))
    num_train = len(events.split().train)
    try:
        run = fit(
            made,
            events,
            out=out,
            resume=resume is not None,
            checkpoint_minutes=checkpoint_minutes,
            tensorboard=tensorboard,
            progress=stderr.is_terminal,
            on_epoch=lambda done: say(_line(done, num_train, chosen.epochs)),
            **chosen.fit_options,
        )
    except KeyboardInterrupt as stopped:
        say((str(stopped) or "stopped.") + _how_to_go_on(out))
        raise typer.Exit(130) from None
    if out is not None:
        say(f"saved: {out}")
    if as_json:
        print_json(run.to_dict() | {"run": None if out is None else str(out)})
    else:
        stdout.print(plain(repr(run)), highlight=False, soft_wrap=True)


def _count_or_auto(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"--batch-size {text}: give a number of events, or auto.") from None


def _table(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of the settings, empty if there is none."""
    known = settings.get(name) or {}
    if not isinstance(known, dict):
        raise OptionError(
            f"{name}={known!r} in the file of settings: it must be a table of names and values."
        )
    return known


def _smoothing(
    settings: dict[str, Any], pres: bool | None, published: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the setting ``smoothing`` if flags say it."""
    from pres.smoothing import PRES

    if pres is False:
        for flag, said in (("--pres-option", options), ("--published", published)):
            if said:
                raise OptionError(f"--no-pres trains without PRES: leave out {flag}, or --no-pres.")
        return {"smoothing": None}
    if published:
        return {"smoothing": PRES.published(published, **options)}
    return {"smoothing": _table(settings, "smoothing") | options} if pres or options else {}


def _settings_of_a_run(resume: Path, source: str | None) -> dict[str, Any]:
    from pres.training.folder import RunFolder

    config = RunFolder(resume).config()
    if config["model_options"] is None or (source is None and config["source"] is None):
        raise OptionError(
            f"the run in {resume} is of a model or of events of your own: make them, and go on with "
            f"pres.fit(model, events, out='{resume}', resume=True), or name a file that holds the events."
        )
    return config


def _again(resume: Path, source: str | None) -> EventStream:
    """Return the events of a run to go on with, which may have been moved to a new source."""
    from pres.training.folder import RunFolder
    from pres.training.opened import events_again

    return events_again(RunFolder(resume).events(), str(resume), source)


def _batches(
    model: Any, events: EventStream, settings: dict[str, Any], tolerance: float | None
) -> dict[str, Any]:
    """Return how large batches and steps are where that is left to the stream, and say it."""
    from pres.training.batch_size import options_for
    from pres.training.config import FitConfig, with_batch_size

    if settings.get("batch_size") == "auto":
        of_fit = {name: settings[name] for name in FitConfig.model_fields if name in settings}
        with stoppable("stopped while probing batch sizes. Nothing is kept."):
            found, line = options_for(model, events, tolerance, of_fit, say_probe)
        say(line)
        return {name: found[name] for name in ("batch_size", "step_size")}
    found, why = with_batch_size(settings, events)
    if why is not None:
        say(why)
    return {"batch_size": found["batch_size"]} if "batch_size" in found else {}


def _how_to_go_on(out: Path | None) -> str:
    from pres.training.folder import RunFolder

    if out is None:
        return " Nothing is kept without --out."
    if not RunFolder(out).begun:
        return " Training had not begun, and nothing is kept: give the same command again."
    return f" Go on with: pres train --resume {out}"


def _line(done: EpochResult, num_train: int, epochs: int) -> str:
    from pres.training.logging import duration

    rate = done.share * num_train / done.seconds
    ahead = epochs + 1 - done.epoch - done.share
    left = f"  at most {duration(ahead * num_train / rate)} left" if ahead else ""
    share = "" if done.share == 1 else f" ({done.share:.0%})"
    gain = f"γ {done.memory['gain']:.2f}  " if "gain" in done.memory else ""
    return (
        f"epoch {done.epoch:>3}{share}  loss {done.loss:.4f}  validation AP {done.val.ap:.4f}  "
        f"{gain}{rate:,.0f} events/s{left}"
    )


def named_values(pairs: list[str], flag: str) -> dict[str, Any]:
    """Return ``name=value`` pairs as options; values are numbers, true, false or text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            example = "beta=0.2" if flag == "pres-option" else "memory_dim=64"
            raise OptionError(f"--{flag} {pair}: give a name and a value, as {example}.")
        try:
            options[name] = json.loads(text)
        except (ValueError, RecursionError):
            options[name] = text
    return options


def _check_resume(given: dict[str, Any], reading: dict[str, Any]) -> None:
    """Raise if something was given that a run to go on with has settled already."""
    from pres.training.folder import MAY_CHANGE

    settled = (*SETTLED, *(name for name in given["flags"] if name not in (*MAY_CHANGE, "device")))
    named = [f"--{name.replace('_', '-')}" for name in settled if given.get(name) not in (None, [], False)]
    named += ["how to read the events"] if reading else []
    if named:
        raise OptionError(f"--resume goes on with the settings of the run; leave out {', '.join(named)}.")
