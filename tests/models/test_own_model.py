"""A fourth model is one class and one line in the registry."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import pres
from pres.cli.commands import app
from pres.evaluation import evaluate
from pres.models import MDGNN, time_units
from pres.models.registry import MODELS
from pres.nn import EdgeFeatures, IdentityEmbedding, IdentityMessage, Memory, RNNUpdater, TimeEncoding
from pres.sampling import NegativeSampler
from pres.training.opened import open_run


class Plain(MDGNN):
    """``s_i ← RNN([s_i, s_j, x, Φ(Δt)], s_i)``, ``h_i = s_i``."""

    def __init__(self, events: pres.EventStream, memory_dim: int = 16) -> None:
        features, time = EdgeFeatures(events), TimeEncoding(8, time_units(events)[0])
        memory = Memory(events.num_nodes, memory_dim, feature_dim=0, slots=1, start=events.t[0])
        message = IdentityMessage(memory, features, time)
        super().__init__(
            events,
            memory=memory,
            message=message,
            updater=RNNUpdater(message.dim, memory_dim),
            embedding=IdentityEmbedding(memory_dim),
        )


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "plain", Plain)


@pytest.mark.usefixtures("registered")
def test_it_trains_evaluates_saves_and_loads_by_its_name(tmp_path: Path) -> None:
    events = pres.load("synthetic", num_events=1_000)
    model = pres.build_model("plain", events, {"memory_dim": 8})
    run = pres.fit(model, events, epochs=2, seed=1, out=tmp_path / "run")
    assert run.model_options == {"memory_dim": 8}
    opened = open_run(tmp_path / "run")
    assert isinstance(opened.model, Plain) and opened.model.memory.dim == 8
    split = events.split()
    metrics = evaluate(opened.model, split.test, NegativeSampler(events), seed=1)
    assert metrics.ap == pytest.approx(run.test.ap, abs=1e-6)
    assert all(
        torch.equal(value, model.state_dict()[name]) for name, value in opened.model.named_parameters()
    )


@pytest.mark.usefixtures("registered")
def test_the_command_line_knows_it(tmp_path: Path) -> None:
    flags = ["--model", "plain", "--option", "memory_dim=8", "--epochs", "1", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["train", "synthetic", *flags, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["model"].lower() == "plain"
