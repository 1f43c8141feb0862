"""Models that go on after training: new events in, answers about now out."""

from pres.serving.online import Observed, OnlineModel, Recommended

__all__ = ["Observed", "OnlineModel", "Recommended"]
