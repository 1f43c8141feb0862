"""A model of your own from the parts: in the spirit of DyRep (Trivedi et al., 2019).

A plain recurrent memory, moved by a node's own events and by those of its neighbours; its embedding is the
memory itself. Where DyRep attends over the neighbours' embeddings, this one takes the mean of their mail.
"""

import torch

import pres
from pres.models import MDGNN, time_units
from pres.nn import EdgeFeatures, IdentityEmbedding, IdentityMessage, Memory, RNNUpdater, TimeEncoding


class DyRep(MDGNN):
    """``s_i ← RNN(mean of the messages from i's events and its neighbours', s_i)``, ``h_i = s_i``."""

    def __init__(self, events: pres.EventStream, dim: int = 32) -> None:
        features, time = EdgeFeatures(events), TimeEncoding(dim, time_units(events)[0])
        memory = Memory(events.num_nodes, dim, features.numeric_dim, slots=1, start=events.t[0])
        message = IdentityMessage(memory, features, time, mailed=True)  # their mean is kept
        super().__init__(
            events,
            memory=memory,
            message=message,
            updater=RNNUpdater(message.dim, dim),
            embedding=IdentityEmbedding(dim),
            deliver_to="neighbours",
            aggregate="mean",
        )


if __name__ == "__main__":
    events = pres.load("synthetic", num_events=4_000)
    torch.manual_seed(0)
    run = pres.fit(DyRep(events), events, epochs=2, batch_size=100)
    print(run)
