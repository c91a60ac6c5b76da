"""Channels: linear operators from distributions of secrets to probabilities of reports."""

from ibukit.channels._gram_kernels import mirror as mirror
from ibukit.channels.base import Channel as Channel
from ibukit.channels.base import Score as Score
from ibukit.channels.bits import BitChannel as BitChannel
from ibukit.channels.dense import DenseChannel as DenseChannel
from ibukit.channels.dense import RowMajorChannel as RowMajorChannel
from ibukit.channels.line import LineChannel as LineChannel
from ibukit.channels.lookup import LookupChannel as LookupChannel
from ibukit.channels.plane import PlaneChannel as PlaneChannel
from ibukit.channels.pools.bit_pools import BitPoolChannel as BitPoolChannel
from ibukit.channels.pools.line_pools import LinePoolChannel as LinePoolChannel
from ibukit.channels.pools.response_pools import ResponsePoolChannel as ResponsePoolChannel
from ibukit.channels.response import ResponseChannel as ResponseChannel
from ibukit.channels.signs.hadamard import HadamardChannel as HadamardChannel
from ibukit.channels.stacked import StackedChannel as StackedChannel
