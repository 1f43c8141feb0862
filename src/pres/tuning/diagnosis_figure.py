"""A diagnosis as one picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from pres.data.info import SECONDS_PER_UNIT
from pres.data.stream import EventStream
from pres.data.summary import gaps_of_nodes
from pres.figure import FIRST, GREY, SECOND, check_png, new_figure, save_png, tidy

if TYPE_CHECKING:
    from pres.tuning.diagnose import Diagnosis


def save_figure(diagnosis: Diagnosis, path: Path) -> Path:
    """Draw activity, gaps and pending load of ``diagnosis`` as a PNG at ``path``."""
    check_png(path)
    diagnosis = replace(diagnosis, events=diagnosis.events.to("cpu"))
    ties = ", equal times kept together" if diagnosis.ties == "whole" else ""
    title = f"{diagnosis.events.info.title}: {diagnosis.looked_at} events{ties}"
    figure = new_figure(13, 7.2, title)
    panels = figure.subplots(2, 3).flatten()
    _draw_rate(panels[0], diagnosis)
    _draw_activity(panels[1], diagnosis)
    _draw_gaps(panels[2], diagnosis)
    with_pending = "events_with_pending", "o-", FIRST, "events with pending events"
    lost = "lost_updates", "s-", SECOND, "lost memory updates"
    _draw_loads(panels[3], diagnosis, with_pending, lost, ylim=(0, 1.03), title="What a batch loses")
    panels[3].yaxis.set_major_formatter(PercentFormatter(1, symbol=None))
    panels[3].set_ylabel("%")
    panels[3].legend(framealpha=0.7, loc="best")
    chains = (
        ("mean_pending", "o-", FIRST, "mean pending set"),
        ("longest_chain", "s-", SECOND, "longest chain"),
        ("largest_batch", ":", GREY, "largest batch"),
    )
    _draw_loads(panels[4], diagnosis, *chains, yscale="log", title="Pending events", ylabel="events")
    panels[4].legend(frameon=False)
    width = "mean_level_width", "o-", FIRST, ""
    at_once = "Events that exact memory applies at once"
    _draw_loads(panels[5], diagnosis, width, title=at_once, ylabel="mean level width")
    panels[5].set_ylim(0, 1.1 * max(load.mean_level_width for load in diagnosis.loads.values()))
    for panel in panels:
        tidy(panel)
    return save_png(figure, path)


def _draw_rate(panel: Axes, diagnosis: Diagnosis) -> None:
    t, label = _readable_time(diagnosis.events)
    counts = torch.histc(t, bins=100)
    panel.stairs(counts.numpy(), np.linspace(float(t[0]), float(t[-1]), 101), fill=True, color=FIRST)
    panel.set(title="Events over time", xlabel=label, ylabel="events per 1 % of the span")


def _readable_time(events: EventStream) -> tuple[Tensor, str]:
    """Return times on a scale a person reads, and what that scale is."""
    span = events.span_seconds
    if span is None or events.info.time_unit is None:
        return events.t.double(), "t"
    scale, unit = (86_400, "days") if span > 3 * 86_400 else (3_600, "hours")
    seconds = (events.t - events.t[0]).double() * SECONDS_PER_UNIT[events.info.time_unit]
    return seconds / scale, f"{unit} since the first event"


def _draw_activity(panel: Axes, diagnosis: Diagnosis) -> None:
    events = diagnosis.events
    sides = (("sources", events.src, FIRST), ("destinations", events.dst, SECOND))
    for name, nodes, colour in sides:
        counts = torch.bincount(nodes)
        x, y = _survival(counts[counts > 0])
        panel.step(x, y, where="post", color=colour, label=name)
    panel.set(
        xscale="log",
        yscale="log",
        title="Activity",
        xlabel="events",
        ylabel="share of nodes with at least as many",
    )
    panel.legend(frameon=False)


def _draw_gaps(panel: Axes, diagnosis: Diagnosis) -> None:
    events = diagnosis.events
    gaps = gaps_of_nodes(events.src, events.dst, events.t, events.num_nodes).double()
    positive = gaps[gaps > 0]
    unit = diagnosis.events.info.time_unit
    if len(positive):
        low, high = float(positive.min()), float(positive.max())
        bins = np.geomspace(low, high, 60) if high > low else np.array([low, low * 1.01])
        panel.hist(positive.numpy(), bins=bins.tolist(), color=FIRST)
        panel.set_xscale("log")
    ties = 1 - len(positive) / max(len(gaps), 1)
    panel.set(
        title="Time between events of a node",
        xlabel=f"gap ({unit}); {ties:.1%} are 0 and not shown"
        if unit
        else f"gap; {ties:.1%} are 0 and not shown",
        ylabel="pairs of events",
    )


def _draw_loads(panel: Axes, diagnosis: Diagnosis, *lines: tuple[str, str, str, str], **axes: Any) -> None:
    """Draw columns of the pending loads against the batch size: a name, style, colour and label of each."""
    for name, style, colour, label in lines:
        values = [getattr(load, name) for load in diagnosis.loads.values()]
        panel.plot(list(diagnosis.loads), values, style, color=colour, label=label)
    panel.set(xscale="log", xlabel="batch size", **axes)


def _survival(values: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values and the share of all that are at least as large."""
    distinct, counts = np.unique(values.numpy(), return_counts=True)
    return distinct, counts[::-1].cumsum()[::-1] / counts.sum()
