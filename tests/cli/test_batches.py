import json
from pathlib import Path

import pytest

from tests.cli.process import interrupted, run

SMALL = ["--batch-size", "50", "--factor", "4", "--epochs", "1"]


def write_log(tmp_path: Path, lines: int = 1_600) -> list[str]:
    log = tmp_path / "log.csv"
    rows = [f"user{i * 7919 % 97},item{i * i % 613},{10 * i}" for i in range(lines)]
    log.write_text("\n".join(["user,item,ts", *rows]))
    return [str(log), "--src", "user", "--dst", "item", "--time", "ts", "--bipartite"]


def test_batches_shows_three_ways_on_ones_own_log(tmp_path: Path) -> None:
    source, png = write_log(tmp_path, 600), tmp_path / "batches.png"
    done = run("batches", *source, *SMALL, "--png", png, "--json")
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    shown = ("training", "batch_size", "step_size")
    assert [tuple(trial[name] for name in shown) for trial in trials] == [
        ("standard", 50, 50),
        ("standard, 4x", 200, 200),
        ("preset, scan", 200, 200),
    ]
    assert all(0 < trial["test_ap"] <= 1 and trial["events_per_second"] > 0 for trial in trials)
    assert trials[1]["val_ap"] != trials[2]["val_ap"]  # the preset is more than a size
    assert png.read_bytes().startswith(b"\x89PNG")
    printed = run("batches", *source, *SMALL)
    assert printed.returncode == 0, printed.stderr
    rows = [line.split() for line in printed.stdout.splitlines()]
    assert rows[1][:4] == ["training", "batch", "step", "val"]
    assert rows[2][:3] == ["standard", "50", "50"]
    assert rows[4][:4] == ["preset,", "scan", "200", "200"]
    wrong = run("batches", *source, "--factor", "1")
    assert wrong.returncode == 1 and "--factor 1" in wrong.stderr and "Traceback" not in wrong.stderr


def test_a_batch_size_can_be_found_and_taken(tmp_path: Path) -> None:
    source = write_log(tmp_path, 4_000)
    told = run(
        "diagnose",
        *source,
        "--find-batch-size",
        "jodie",
        "--tolerance",
        "50",
        "--batch-size",
        "200",
        "--json",
    )
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)["found_batch_size"]
    assert found["batch_size"] in (200, 400) and "200" in found["probed"]
    settings = tmp_path / "auto.toml"
    settings.write_text('model = "jodie"\nbatch_size = "auto"\ntolerance = 50\nepochs = 1\n')
    by_flags = ["--model", "jodie", "--batch-size", "auto", "--tolerance", "50", "--epochs", "1"]
    for how in (by_flags, ["--config", str(settings)]):
        taken = run("train", *source, *how, "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["batch_size"] == found["batch_size"]
        assert "leave out" in taken.stderr and "(tolerance 50)" in taken.stderr
        assert "Weights move every 200 events." in taken.stderr
    by_hand = run("train", *source, "--config", settings, "--batch-size", "300")  # nothing is left to accept
    assert by_hand.returncode == 0 and by_hand.stdout.startswith("Run of JODIE on log with batches of 300:")
    wrong = run("train", *source, "--batch-size", "many")
    assert wrong.returncode == 1 and "--batch-size many: give a number of events, or auto" in wrong.stderr


def test_the_preset_is_a_flag(tmp_path: Path) -> None:
    source = write_log(tmp_path, 600)
    flags = ["--model", "jodie", "--preset", "large", "--batch-size", "150", "--epochs", "1"]
    done = run("train", *source, *flags, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    trained = json.loads(done.stdout)
    config = trained["config"]
    assert (trained["model"], config["preset"], config["batch_size"]) == ("JODIE-scan", "large", 150)
    assert config["optimiser"] == "muon" and config["lr"] == 4e-3
    more = run("train", "--resume", tmp_path / "run", "--epochs", "2", "--json")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["config"]["batch_size"] == 150


def test_the_preset_says_what_batch_size_it_chose_and_why(tmp_path: Path) -> None:
    source = write_log(tmp_path, 12_000)
    done = run("train", *source, "--model", "jodie", "--preset", "large", "--epochs", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["batch_size"] == 200
    assert "preset='large': batches of 200 events for 8,400 of training, which leaves" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "begins", "says"),
    [
        (["train", "--batch-size", "auto", "--out", "run"], "probing", "stopped while probing batch sizes."),
        (
            ["diagnose", "--find-batch-size", "tgn", "--png", "a.png"],
            "probing",
            "stopped while probing batch sizes.",
        ),
        (["batches", "--model", "tgn", "--png", "a.png"], "training", "stopped. Nothing is kept;"),
    ],
)
def test_an_interrupt_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], begins: str, says: str
) -> None:
    stopped = interrupted(arguments[0], "synthetic", *arguments[1:], batch=3, cwd=tmp_path)
    assert stopped.returncode == 130 and stopped.stdout == ""
    at_work, said = stopped.stderr.splitlines()
    assert at_work.startswith(begins) and said.startswith(says)
    assert list(tmp_path.iterdir()) == []
