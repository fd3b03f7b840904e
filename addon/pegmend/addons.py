"""The addons, in the order in which a flow passes them."""

from pegmend.capture import Capture
from pegmend.logwatch import LogWatch
from pegmend.options import PegmendOptions
from pegmend.outgoing import Outgoing
from pegmend.recovery import Recovery
from pegmend.stream import StreamLayers
from pegmend.unfolding import Unfolding

_log_watch = LogWatch()
_unfolding = Unfolding()

addons = [
    PegmendOptions(),
    StreamLayers(),
    Outgoing(_unfolding),
    Recovery(_log_watch, _unfolding),
    _log_watch,
    Capture(),
    _unfolding,
]
"""Recovery comes before the log watch, which then ends the request, and before capture, which records what the client
gets."""
