"""The parts of a memory-based dynamic graph neural network."""

from pres.nn.decoder import LinkDecoder, NodeDecoder
from pres.nn.embedding import IdentityEmbedding, TemporalAttention, TimeProjection
from pres.nn.encoding import EdgeFeatures, NodeEncoding, TimeEncoding
from pres.nn.mailbox_scan import MailboxScan
from pres.nn.memory import Mail, Memory
from pres.nn.message import EventMessage, IdentityMessage, MLPMessage
from pres.nn.scan import linear_scan
from pres.nn.scan_memory import ScanMemory
from pres.nn.scan_updater import ScanUpdater
from pres.nn.updater import GRUUpdater, MailboxAttention, RNNUpdater

__all__ = [
    "EdgeFeatures",
    "EventMessage",
    "GRUUpdater",
    "IdentityEmbedding",
    "IdentityMessage",
    "LinkDecoder",
    "MLPMessage",
    "Mail",
    "MailboxAttention",
    "MailboxScan",
    "Memory",
    "NodeDecoder",
    "NodeEncoding",
    "RNNUpdater",
    "ScanMemory",
    "ScanUpdater",
    "TemporalAttention",
    "TimeEncoding",
    "TimeProjection",
    "linear_scan",
]
