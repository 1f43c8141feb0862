"""Names, options, settings and folders that no command can use."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from tests.faults.kinds import (
    NAMED,
    diagnose,
    kind,
    table,
    text,
)


@kind
def name_with_markup(rng: random.Random, folder: Path) -> list[str]:
    name = "".join(
        rng.choice(["[", "]", "\\", "/bold", "red", "[/]", "x", ":smile:", "%s", "{0}"]) for _ in range(9)
    )
    return [rng.choice(["diagnose", "train", "evaluate", "report"]), f"{name}.csv"]


@kind
def name_with_codes(rng: random.Random, folder: Path) -> list[str]:
    name = "".join(rng.choice("\x1b\x07\r\n\t\x9b\u202e\udcff\u0301é") for _ in range(6))
    command = rng.choice(["diagnose", "evaluate", "report", "train"])
    return [command, f"a{name}.csv"]


@kind
def name_too_long(rng: random.Random, folder: Path) -> list[str]:
    name = rng.choice("aé") * rng.choice([256, 300, 5_000])
    return rng.choice(
        [["diagnose", f"{name}.csv"], ["evaluate", name], ["report", name], ["predict", name, name]]
    )


@kind
def user_that_is_not_there(rng: random.Random, folder: Path) -> list[str]:
    name = f"~nobody{rng.randrange(999)}/a.csv"
    return rng.choice([["diagnose", name], ["train", name], ["evaluate", name], ["report", name]])


@kind
def not_a_file(rng: random.Random, folder: Path) -> list[str]:
    (folder / "d.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "gone.csv").symlink_to("nowhere")
    (folder / "f").write_text("x")
    os.mkfifo(folder / "pipe.csv")
    names = ["d.csv", "loop.csv", "gone.csv", "f/a.csv", "pipe.csv", ".", "/dev/null", "/dev/zero", "", " "]
    return ["diagnose", rng.choice(names)]


# Options and settings


@kind
def columns_that_are_wrong(rng: random.Random, folder: Path) -> list[str]:
    options = [
        ["--src", "scr"],
        ["--src", "dst", "--dst", "dst"],
        ["--x", "nothing"],
        ["--time", "T"],
        ["--label", "w"],
        ["--category", "src", "--src", "src"],
        ["--separator", ";;"],
        ["--separator", ""],
        ["--time-unit", "weeks"],
        ["--first", "0"],
        ["--first", "-3"],
        ["--src", "[/]"],
        ["--x", "kind"],
        ["--batch-size", "0"],
        ["--batch-size", "-1"],
        ["--sample", "0"],
    ]
    return diagnose(folder, "a.csv", text(table(rng)), *rng.choice(options))


@kind
def number_that_is_too_large(rng: random.Random, folder: Path) -> list[str]:
    (folder / "a.csv").write_bytes(text(table(rng)))
    number = rng.choice(["1" + "0" * 30, "9" * 5_000, str(2**63), str(2**64), "-" + "9" * 25, "1e999"])
    flag = rng.choice(["--epochs", "--seed", "--batch-size", "--eval-batch-size", "--patience", "--lr"])
    return ["train", "a.csv", *NAMED, flag, number]


@kind
def option_of_a_model_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    (folder / "a.csv").write_bytes(text(table(rng)))
    option = rng.choice(
        [
            "memory_dim",
            "memory_dim=",
            "=3",
            "memory_dim=-1",
            "memory_dim=0",
            "memory_dim=" + "[" * 100_000,
            "memory_dim=" + "9" * 31,
            "memory_dim=1e9",
            "mem=3",
            "memory_dim=null",
            "cell=gru2",
            "memory_dim={}",
            "dropout=2",
            "memory_dim=NaN",
        ]
    )
    return ["train", "a.csv", *NAMED, "--batch-size", "5", "--epochs", "1", "-o", option]


@kind
def settings_that_are_none(rng: random.Random, folder: Path) -> list[str]:
    contents = [
        '{"epochs":' * 100_000,
        "[" * 100_000,
        '{"epochs": 1e400}',
        '{"epochs": "many"}',
        '{"epoch": 3}',
        "[]",
        "3",
        '{"epochs": null',
        '{"reading": 3}',
        '{"model_options": []}',
        '{"smoothing": {"method": "magic"}}',
        '{"epochs": NaN}',
        '{"epochs": ' + "9" * 5_000 + "}",
        '{"model": "tgm"}',
        '{"source": 3}',
        "\ud800",
        '{"epochs": true}',
        '{"lr": -1}',
        '{"epochs": 1000001}',
    ]
    content = rng.choice(contents).encode("utf-8", "surrogatepass")
    (folder / "c.json").write_bytes(content)
    (folder / "a.csv").write_bytes(text(table(rng)))
    return ["train", "a.csv", *NAMED, "--config", "c.json"]


@kind
def toml_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    contents = [
        "epochs = ",
        "a = " + "[" * 50_000,
        "epochs = 1\nepochs = 2",
        "[epochs]\n[epochs]",
        "epochs = 1979-13-01",
        "a" * 100_000,
        "epochs = '''",
        "\x00",
        "lr = inf",
        "epochs = 3.5",
        "x.y.z = {a = 1, }",
    ]
    (folder / "c.toml").write_text(rng.choice(contents))
    (folder / "a.csv").write_bytes(text(table(rng)))
    return ["train", "a.csv", *NAMED, "--config", "c.toml"]


@kind
def place_that_cannot_be_written(rng: random.Random, folder: Path) -> list[str]:
    (folder / "a.csv").write_bytes(text(table(rng)))
    (folder / "full").mkdir()
    (folder / "full" / "x").write_text("x")
    out = rng.choice(
        ["a.csv", "a.csv/s", "full", "/proc/s", "/dev/null", "s\0s", "b" * 300, "~no-such-user/s"]
    )
    return ["store", "a.csv", *NAMED, "--out", out]


@kind
def run_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    (folder / "run").mkdir()
    for name in ("config.json", "run.json", "events.json", "best.safetensors"):
        if rng.random() < 0.6:
            (folder / "run" / name).write_bytes(
                rng.choice([b"", b"{}", b"[]", b"{", b"null", rng.randbytes(40)])
            )
    pairs = folder / "pairs.csv"
    pairs.write_text("src,dst\n1,2\n")
    return rng.choice(
        [
            ["evaluate", "run"],
            ["predict", "run", "pairs.csv"],
            ["classify", "run"],
            ["report", "run"],
            ["train", "--resume", "run"],
        ]
    )


@kind
def store_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    (folder / "s").mkdir()
    contents: list[object] = [
        "",
        "{}",
        "[" * 100_000,
        "null",
        '{"format": 2}',
        '{"files": 3}',
        "\x00",
        json.dumps({"format": 2, "files": {"t.npy": {}}, "sha256": "0" * 64}),
    ]
    (folder / "s" / "store.json").write_text(str(rng.choice(contents)))
    return [rng.choice(["diagnose", "train"]), "s"]


@kind
def synthetic_stream_that_cannot_be(rng: random.Random, folder: Path) -> list[str]:
    number = rng.choice(["0", "1", "-5", "1" + "0" * 30, str(2**63), "x"])
    return ["store", "synthetic", "--num-events", number, "--out", "s"]


@kind
def word_that_is_nothing(rng: random.Random, folder: Path) -> list[str]:
    word = "".join(rng.choice("abcdefgh[]") for _ in range(7))
    return rng.choice(
        [
            [word],
            ["diagnose", word],
            ["train", word, "--model", word],
            ["reproduce", word],
            ["diagnose", word, f"--{word}"],
            ["theory", word],
            ["train", "--preset", word, "uci"],
        ]
    )
