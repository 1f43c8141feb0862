import json

import pytest
import torch

from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.sampling import PendingProfile, TemporalBatches
from pres.tuning import diagnose
from tests.oracles.sampling import level_of_events, pending_set, updates_per_node
from tests.streams import as_stream

EVENTS = [(0, 1, 0.0), (0, 1, 0.0), (1, 2, 5.0), (3, 3, 6.0), (0, 2, 9.0)]


def test_a_diagnosis_holds_the_summary_and_the_load_of_each_batch_size() -> None:
    stream = as_stream(EVENTS)
    diagnosis = diagnose(stream, [4, 2, 2])
    assert list(diagnosis.loads) == [2, 4]  # in order, once each
    assert diagnosis.summary == stream.summary()
    for size, load in diagnosis.loads.items():
        assert load == PendingProfile.of(stream, TemporalBatches(stream, size).edges).load()


def test_of_a_long_stream_the_last_events_are_looked_at_and_that_is_said() -> None:
    stream = as_stream(EVENTS)
    found = diagnose(stream, [2], sample=3)
    assert found.summary == stream[2:].summary() and found.loads == diagnose(stream[2:], [2]).loads
    assert (found.looked_at, diagnose(stream, [2]).looked_at) == ("the last 3 of 5", "5")
    assert "the last 3 of 5" in repr(found)
    assert found.to_dict()["stream_events"] == 5 and found.to_dict()["summary"]["events"] == 3
    with pytest.raises(OptionError, match="sample=0: look at one event at least"):
        diagnose(stream, sample=0)


def test_whole_ties_make_other_batches() -> None:
    stream = as_stream(EVENTS)
    assert diagnose(stream, [1], ties="whole").loads[1].batches == 4
    assert diagnose(stream, [1], ties="cut").loads[1].batches == 5


def test_as_json_it_is_plain_and_complete() -> None:
    found = json.loads(json.dumps(diagnose(as_stream(EVENTS), [2]).to_dict(), allow_nan=False))
    assert found["dataset"] == "events"
    assert found["variant"] is None
    assert found["summary"]["self_loops"] == 1
    assert found["summary"]["most_events_at_one_t"] == 2
    assert [row["batch_size"] for row in found["pending"]] == [2]
    assert found["pending"][0]["batches"] == 3


def test_as_text_it_shows_the_variant_and_every_batch_size() -> None:
    src = torch.arange(1000) % 7
    info = StreamInfo(name="wikipedia", variant="featureless", time_unit="h")
    text = repr(diagnose(EventStream(src, src + 7, torch.arange(1000), info=info)))
    assert "wikipedia (featureless)" in text
    assert "41.6 days" in text
    for size in ("50", "100", "200", "400", "800"):
        assert f" {size} " in text


def test_a_stream_smaller_than_every_default_is_one_batch() -> None:
    assert list(diagnose(as_stream(EVENTS)).loads) == [5]


def test_a_batch_size_larger_than_the_stream_is_refused() -> None:
    with pytest.raises(OptionError, match=r"\[2, 100\] do not fit a stream of 5 events"):
        diagnose(as_stream(EVENTS), [2, 100])
    with pytest.raises(OptionError, match="no events"):
        diagnose(as_stream(EVENTS)[:0])


def test_the_table_shows_what_a_loop_counts() -> None:
    # One batch: the second event is at the time of the first, the third and fifth are later and share nodes.
    text = repr(diagnose(as_stream(EVENTS, isolated=0), [5]))
    pending = [len(pending_set(EVENTS, i)) for i in range(5)]
    assert pending == [0, 0, 2, 0, 3]
    updates = updates_per_node(EVENTS)
    lost = sum(count - 1 for count in updates.values()) / sum(updates.values())
    chain = max(level_of_events(EVENTS)) + 1
    (cells,) = (line.split() for line in text.splitlines() if line.split()[:1] == ["5"])
    assert cells == ["5", "5", "1", "40.0%", "1.0", f"{lost:.1%}", str(chain), f"{5 / chain:.1f}"]
