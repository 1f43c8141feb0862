import json
from pathlib import Path

from tests.cli.process import run

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
    sizes = [(trial["way"], trial["batch_size"], trial["step_size"]) for trial in trials]
    assert sizes == [("standard", 50, 50), ("standard, 4x", 200, 200), ("preset, 4x", 200, 200)]
    assert all(0 < trial["test_ap"] <= 1 and trial["events_per_second"] > 0 for trial in trials)
    assert trials[1]["val_ap"] != trials[2]["val_ap"]  # the preset is more than a size
    assert png.read_bytes().startswith(b"\x89PNG")
    shown = run("batches", *source, *SMALL)
    assert shown.returncode == 0 and "preset, 4x" in shown.stdout and "points" in shown.stdout
    wrong = run("batches", *source, "--factor", "1")
    assert wrong.returncode == 1 and "factor=1" in wrong.stderr and "Traceback" not in wrong.stderr


def test_a_batch_size_can_be_advised_and_taken(tmp_path: Path) -> None:
    source = write_log(tmp_path, 4_000)
    told = run("diagnose", *source, "--advise", "jodie", "--tolerance", "50", "--batch-size", "200", "--json")
    assert told.returncode == 0, told.stderr
    advice = json.loads(told.stdout)["advice"]
    assert advice["batch_size"] in (200, 400) and "200" in advice["probed"]
    taken = run(
        "train",
        *source,
        *("--model", "jodie", "--batch-size", "auto", "--tolerance", "50", "--epochs", "1", "--json"),
    )
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout)["batch_size"] == advice["batch_size"]
    assert "leave out" in taken.stderr
    wrong = run("train", *source, "--batch-size", "many")
    assert wrong.returncode == 1 and "--batch-size many: give a number of events, or auto" in wrong.stderr


def test_the_preset_is_a_flag(tmp_path: Path) -> None:
    source = write_log(tmp_path, 600)
    flags = ["--model", "jodie", "--preset", "large", "--batch-size", "150", "--epochs", "1"]
    done = run("train", *source, *flags, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    config = json.loads(done.stdout)["config"]
    assert (config["preset"], config["batch_size"], config["step_size"]) == ("large", 150, 150)
    assert config["refresh"] == 50 and config["lr_rule"] == "sqrt"
    more = run("train", "--resume", tmp_path / "run", "--epochs", "2", "--json")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["config"]["refresh"] == 50
