"""Batches of the preset: as large as leaves an epoch its steps, and only for scans."""

from __future__ import annotations

from pathlib import Path

import pytest

import pres
from pres.errors import Notice, OptionError
from pres.models.registry import build_model
from pres.training.config import (
    LARGEST,
    PRESETS,
    SMALLEST,
    STEPS,
    FitConfig,
    batch_size_for,
    with_batch_size,
)
from tests.training.runs import results

EVENTS = pres.load("synthetic", num_events=12_000)
SMALL = {"cell": "scan", "memory_dim": 16, "time_dim": 8, "node_encoding_dim": 4}


@pytest.mark.parametrize("train", [1, 5_999, 6_000, 24_500, 42_000, 96_000, 110_000, 10**8])
def test_an_epoch_keeps_its_steps_and_no_larger_batch_would(train: int) -> None:
    b = batch_size_for(train)
    assert b % 100 == 0 and SMALLEST <= b <= LARGEST
    if b > SMALLEST:
        assert train / b >= STEPS
    if b < LARGEST:
        assert train / (b + 100) < STEPS


def test_what_was_chosen_is_said_and_what_is_given_goes_before_it() -> None:
    options, line = with_batch_size({"preset": "large"}, EVENTS)
    assert options["batch_size"] == 200 and line is not None and "42 optimiser steps" in line
    for given in ({"preset": "large", "batch_size": 700}, {"batch_size": 300}, {}):
        assert with_batch_size(given, EVENTS) == (given, None)


def test_a_preset_is_its_settings(tmp_path: Path) -> None:
    config = FitConfig.of({"preset": "large", "warmup": 0.5})
    assert config.warmup == 0.5 and config.lr == PRESETS["large"]["lr"]
    with pytest.warns(Notice, match="batches of 200 events for 8,400 of training"):
        by_name = pres.fit(
            build_model("jodie", EVENTS, SMALL), EVENTS, preset="large", epochs=1, out=tmp_path / "a"
        )
    written_out = PRESETS["large"] | {"batch_size": 200}
    by_hand = pres.fit(build_model("jodie", EVENTS, SMALL), EVENTS, epochs=1, **written_out)
    assert results(by_name) == results(by_hand)
    again = build_model("jodie", EVENTS, SMALL)
    longer = pres.fit(again, EVENTS, preset="large", epochs=2, out=tmp_path / "a", resume=True)
    assert longer.config["batch_size"] == 200 and len(longer.history) == 2


def test_it_is_refused_for_models_with_mail() -> None:
    with pytest.raises(OptionError, match="is of models whose memory is scanned"):
        pres.fit(build_model("jodie", EVENTS), EVENTS, preset="large", batch_size=400, epochs=1)
