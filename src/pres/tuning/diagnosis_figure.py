"""A diagnosis as one picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib.axes import Axes
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
    _draw_shares(panels[3], diagnosis)
    _draw_pending(panels[4], diagnosis)
    _draw_levels(panels[5], diagnosis)
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


def _draw_shares(panel: Axes, diagnosis: Diagnosis) -> None:
    sizes, loads = list(diagnosis.loads), list(diagnosis.loads.values())
    with_pending = [100 * load.events_with_pending for load in loads]
    lost = [100 * load.lost_updates for load in loads]
    panel.plot(sizes, with_pending, "o-", color=FIRST, label="events with pending events")
    panel.plot(sizes, lost, "s-", color=SECOND, label="lost memory updates")
    panel.set(xscale="log", ylim=(0, 103), title="What a batch loses", xlabel="batch size", ylabel="%")
    panel.legend(framealpha=0.7, loc="best")


def _draw_pending(panel: Axes, diagnosis: Diagnosis) -> None:
    sizes, loads = list(diagnosis.loads), list(diagnosis.loads.values())
    panel.plot(sizes, [load.mean_pending for load in loads], "o-", color=FIRST, label="mean pending set")
    panel.plot(sizes, [load.longest_chain for load in loads], "s-", color=SECOND, label="longest chain")
    panel.plot(sizes, [load.largest_batch for load in loads], ":", color=GREY, label="largest batch")
    panel.set(xscale="log", yscale="log", title="Pending events", xlabel="batch size", ylabel="events")
    panel.legend(frameon=False)


def _draw_levels(panel: Axes, diagnosis: Diagnosis) -> None:
    sizes, loads = list(diagnosis.loads), list(diagnosis.loads.values())
    panel.plot(sizes, [load.mean_level_width for load in loads], "o-", color=FIRST)
    panel.set(
        xscale="log",
        title="Events that exact memory applies at once",
        xlabel="batch size",
        ylabel="mean level width",
    )
    panel.set_ylim(0, 1.1 * max(load.mean_level_width for load in loads))


def _survival(values: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values and the share of all that are at least as large."""
    distinct, counts = np.unique(values.numpy(), return_counts=True)
    return distinct, counts[::-1].cumsum()[::-1] / counts.sum()
