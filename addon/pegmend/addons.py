"""The addons, in the order in which a flow passes them."""

from pegmend.adaptation import Adaptation
from pegmend.capture import Capture
from pegmend.logwatch import LogWatch
from pegmend.options import PegmendOptions
from pegmend.outgoing import Outgoing
from pegmend.recovery import Recovery
from pegmend.stream import StreamLayers

_log_watch = LogWatch()
_adaptation = Adaptation()

addons = [
    PegmendOptions(),
    StreamLayers(),
    Outgoing(_adaptation),
    Recovery(_log_watch, _adaptation),
    _log_watch,
    Capture(),
    _adaptation,
]
"""Recovery comes before the log watch, which then ends the request, and before capture, which records what the client
gets."""
