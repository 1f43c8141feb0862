"""Jobs are plain values, and the same values are the same job."""

import json

from pres.paper.experiments.job import Job


def test_the_order_of_settings_does_not_matter_and_every_value_does() -> None:
    settings = {"source": "uci", "model": "tgn", "seed": 0, "smoothing": {"beta": 0.1}}
    shuffled = dict(reversed(list(settings.items())))
    assert Job("train", settings).name == Job("train", shuffled).name
    others = [settings | {"seed": 1}, settings | {"smoothing": {"beta": 0.2}}, settings | {"lr": 1.0}]
    names = {Job("train", other).name for other in [settings, *others]} | {Job("memory", settings).name}
    assert len(names) == 5
    assert Job("train", settings).name.startswith("train-tgn-uci-")


def test_a_job_goes_through_json_and_back() -> None:
    job = Job("train", {"source": "uci", "model": "apan", "seed": 3, "epochs": 2})
    again = Job.of(json.loads(json.dumps(job.to_dict())))
    assert again.name == job.name
    assert again.settings == job.settings and not again.alone
    assert "APAN on uci" in job.title and "seed 3" in job.title
