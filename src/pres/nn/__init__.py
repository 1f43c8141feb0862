"""The parts of a memory-based dynamic graph neural network."""

from pres.nn.codes import NodeCodes
from pres.nn.decoders import LinkDecoder, NodeDecoder
from pres.nn.embedding import IdentityEmbedding, TemporalAttention, TimeProjection
from pres.nn.features import EdgeFeatures
from pres.nn.memory import Mail, Memory
from pres.nn.messages import IdentityMessage, MLPMessage
from pres.nn.scan import linear_scan
from pres.nn.time_encoding import TimeEncoding
from pres.nn.updaters import GRUUpdater, MailboxAttention, RNNUpdater

__all__ = [
    "EdgeFeatures",
    "GRUUpdater",
    "IdentityEmbedding",
    "IdentityMessage",
    "LinkDecoder",
    "MLPMessage",
    "Mail",
    "MailboxAttention",
    "Memory",
    "NodeCodes",
    "NodeDecoder",
    "RNNUpdater",
    "TemporalAttention",
    "TimeEncoding",
    "TimeProjection",
    "linear_scan",
]
