import json
from pathlib import Path
from typing import Any

import pytest

from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError
from pres.training.config import FitConfig, TrainConfig, read_config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"source": "a.csv", "batchsize": 5},
            "run.toml has no option 'batchsize'. Did you mean 'batch_size'?",
        ),
        ({"source": "a.csv", "model": "tng"}, "model='tng'"),
        ({"batch_size": 10}, "run.toml lacks 'source'"),
        ({"source": "a.csv", "batch_size": 10, "step_size": 0}, "step_size=0"),
        ({"source": "a.csv", "precision": "float16"}, "precision='float16'"),
        ({"source": "a.csv", "seed": -1}, "seed=-1"),
        ({"source": "a.csv", "batch_size": "200"}, "batch_size='200'"),
        ({"source": "a.csv", "epochs": True}, "epochs=True"),
    ],
)
def test_settings_that_cannot_be_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        TrainConfig.of(options, "run.toml")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'source = "clicks.csv"\nmodel = "apan"\nlr = 0.01\n'
        '[reading]\nsrc = "user"\n[model_options]\nheads = 4\n'
    )
    found = read_config(tmp_path / "a.toml")
    (tmp_path / "a.json").write_text(json.dumps(found))
    assert read_config(tmp_path / "a.json") == found
    config = TrainConfig.of(found)
    assert (config.source, config.model, config.lr) == ("clicks.csv", "apan", 0.01)
    assert config.reading == {"src": "user"} and config.model_options == {"heads": 4}
    assert config.fit_options.keys() == FitConfig.model_fields.keys()
    assert config.fit_options["lr"] == 0.01 and config.fit_options["batch_size"] == 200


def test_a_file_of_settings_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no such file of settings"):
        read_config(tmp_path / "none.toml")
    for name, text, says in (
        ("bad.toml", "lr = = 3", "line 1"),
        ("bad.json", '{"lr": }', "line 1"),
        ("list.json", "[1]", "holds no settings"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UnreadableSourceError, match=says):
            read_config(tmp_path / name)
    (tmp_path / "a.yaml").write_text("lr: 1")
    with pytest.raises(OptionError, match=r"\.toml or \.json"):
        read_config(tmp_path / "a.yaml")
