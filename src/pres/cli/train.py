"""`pres train`: a model from a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pres.cli.console import plain, print_json, say, say_probe, stderr, stdout, stoppable
from pres.cli.model import AnyModel
from pres.cli.source import SOURCE_HELP, AsJson, Debug, open_events, reads_events
from pres.errors import OptionError

if TYPE_CHECKING:
    from pres.training.checkpoint import EpochResult

Precision = Literal["float32", "bfloat16"]


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
            help="Events between two updates of the memory, or auto: as many as --tolerance lets be.  "
            "\\[default: 200]"
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="With --batch-size auto: the points of AP that larger batches may lose.  \\[default: 0.5]"
        ),
    ] = None,
    step_size: Annotated[
        int | None,
        typer.Option(help="Events between two updates of the weights.  \\[default: as --batch-size]"),
    ] = None,
    protocol: Annotated[
        Literal["tgl"] | None,
        typer.Option(help="tgl: model, training and evaluation as in TGL; other flags override it."),
    ] = None,
    preset: Annotated[
        Literal["large"] | None,
        typer.Option(
            help="large: large batches that keep their accuracy, by a memory that is scanned "
            "(--option cell=scan); other flags go before it."
        ),
    ] = None,
    negative_window: Annotated[
        int | None,
        typer.Option(
            help="Events among which no negative is a real pair; at most a batch.  \\[default: 200]"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.  \\[default: 10]")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without a better validation before stopping.  \\[default: 3]")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.  \\[default: 0.001]")] = None,
    lr_decay: Annotated[
        Literal["none", "cosine"] | None,
        typer.Option(help="How the learning rate falls over the epochs.  \\[default: cosine]"),
    ] = None,
    warmup: Annotated[
        float | None, typer.Option(help="Epochs over which the rate rises from 0.  \\[default: 0]")
    ] = None,
    optimiser: Annotated[
        Literal["adam", "muon"] | None,
        typer.Option(help="What moves the weights.  \\[default: adam]"),
    ] = None,
    max_time_delta: Annotated[
        float | None,
        typer.Option(
            help="Longer time differences count as that share of the training's time.  \\[default: no limit]"
        ),
    ] = None,
    pres: Annotated[
        bool | None,
        typer.Option("--pres/--no-pres", help="Smooth memory: PRES with our defaults.  \\[default: no]"),
    ] = None,
    published: Annotated[
        Literal["equations", "algorithm"] | None,
        typer.Option(help="Smooth memory: PRES as the paper's equations, or its Algorithm 2, have it."),
    ] = None,
    pres_option: Annotated[
        list[str] | None, typer.Option(help="An option of PRES, as beta=0.2; repeatable.")
    ] = None,
    staleness: Annotated[
        int | None,
        typer.Option(
            help="With cell=scan: events that see the same memory in training; 0: each sees all that is "
            "strictly before.  \\[default: 50]"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same numbers.  \\[default: 0]")
    ] = None,
    eval_batch_size: Annotated[
        int | None, typer.Option(help="Events per batch in validation and test.  \\[default: 200]")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Where to compute: cpu, or cuda for a GPU.  \\[default: cpu]")
    ] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="Of matrix products.  \\[default: float32]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings from a .toml or .json file; flags go before them.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the run in this new folder.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder, from where it stopped.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="Also log for TensorBoard, inside --out.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Train a memory model to predict links; weights are chosen on validation, the test part is reported."""
    given = locals()
    from pres.models.registry import build_model
    from pres.smoothing import PRES
    from pres.training import fit
    from pres.training.batch_size import SIZES, check_tolerance, options_for
    from pres.training.config import FitConfig, TrainConfig, read_config, with_batch_size
    from pres.training.folder import RunFolder
    from pres.training.opened import events_again
    from pres.training.trainer import usable_device

    settings = {} if config is None else read_config(config)
    flags = {name: given.get(name) for name in ("source", "model", "device", *FitConfig.model_fields)}
    settings |= {name: value for name, value in flags.items() if value is not None}
    if batch_size is not None:
        settings["batch_size"] = _count_or_auto(batch_size)
    if resume is not None:
        _check_resume(given, reading)
    auto = settings.get("batch_size") == "auto"
    in_file = settings.pop("tolerance", None)
    if tolerance is None and (auto or batch_size is None):  # a flag's number of events goes before auto
        tolerance = in_file
    check_tolerance(tolerance, auto)
    if auto:
        settings["batch_size"] = max(SIZES)  # until it is known
    if reading:
        settings["reading"] = _more(settings, "reading", reading)
    if option:
        settings["model_options"] = _more(settings, "model_options", named_values(option, "option"))
    if pres is False:
        if pres_option:
            raise OptionError("--no-pres trains without PRES: leave out --pres-option, or --no-pres.")
        if published:
            raise OptionError("--no-pres trains without PRES: leave out --published, or --no-pres.")
        settings["smoothing"] = None
    elif published:
        settings["smoothing"] = PRES.published(published, **named_values(pres_option or [], "pres-option"))
    elif pres or pres_option:
        further = named_values(pres_option or [], "pres-option")
        settings["smoothing"] = _more(settings, "smoothing", further)
    if resume is not None:
        settings = RunFolder(resume).config() | settings
        if not RunFolder(resume).repeatable:
            raise OptionError(
                f"the run in {resume} is of a model or of events of your own: make them, and go on with "
                f"pres.fit(model, events, out='{resume}', resume=True)."
            )
        out = resume
    elif settings.get("source") is None:
        raise OptionError("say what to train on: a file, a dataset's name, or --config with a source.")
    if resume is None and settings.get("preset") == "large":
        settings["model_options"] = {"cell": "scan"} | _more(settings, "model_options", {})
    chosen = TrainConfig.of(settings, "pres train" if config is None else str(config))
    usable_device(chosen.device)  # what cannot be is said before anything is read
    if out is not None and resume is None:
        RunFolder(out).check_free()
    if resume is None:
        events = open_events(chosen.source, chosen.reading)
    else:
        events = events_again(RunFolder(resume).events(), str(resume))
    if resume is None:
        settings, line = with_batch_size(settings, events)
        if line is not None:
            say(line)
            chosen = TrainConfig.of(settings)
    made = build_model(chosen.model, events, chosen.model_options, chosen.seed, chosen.protocol)
    made = made.to(chosen.device)
    num_train = len(events.split().train)
    if auto:
        given_settings = {name: settings[name] for name in FitConfig.model_fields if name in settings}
        with stoppable("stopped while probing batch sizes. Nothing is kept."):
            advised, line = options_for(made, events, tolerance, given_settings, say_probe)
        say(line)
        chosen = TrainConfig.of(settings | advised)
    try:
        run = fit(
            made,
            events,
            out=out,
            resume=resume is not None,
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


def _how_to_go_on(out: Path | None) -> str:
    from pres.training.folder import RunFolder

    if out is None:
        return " Nothing is kept without --out."
    if not RunFolder(out).begun:
        return " Training had not begun, and nothing is kept: give the same command again."
    return f" Go on with: pres train --resume {out}"


def _count_or_auto(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"--batch-size {text}: give a number of events, or auto.") from None


def _line(done: EpochResult, num_train: int, epochs: int) -> str:
    from pres.training.progress import duration

    left = duration((epochs - done.epoch) * done.seconds)
    return (
        f"epoch {done.epoch:>3}  loss {done.loss:.4f}  validation AP {done.val.ap:.4f}  "
        f"{_gain(done)}{num_train / done.seconds:,.0f} events/s  at most {left} left"
    )


def _gain(done: EpochResult) -> str:
    return f"γ {done.memory['gain']:.2f}  " if "gain" in done.memory else ""


def _more(settings: dict[str, Any], table: str, further: dict[str, Any]) -> dict[str, Any]:
    """Return a table of the settings with further values; those go before its own."""
    known = settings.get(table) or {}
    if not isinstance(known, dict):
        raise OptionError(
            f"{table}={known!r} in the file of settings: it must be a table of names and values."
        )
    return known | further


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
        except ValueError:
            options[name] = text
    return options


def _check_resume(given: dict[str, Any], reading: dict[str, Any]) -> None:
    """Raise if something was given that a run to go on with has settled already."""
    from pres.training.config import FitConfig
    from pres.training.folder import MAY_CHANGE

    all_of_them = (
        "source",
        "model",
        "option",
        "pres",
        "published",
        "pres_option",
        "config",
        "out",
        "tolerance",
        *FitConfig.model_fields,
    )
    settled = [name for name in all_of_them if name not in MAY_CHANGE]
    named = [name for name in settled if given.get(name) not in (None, [], False)] + list(reading)
    if named:
        raise OptionError(f"--resume goes on with the settings of the run; leave out {', '.join(named)}.")
