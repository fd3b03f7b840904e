"""The addons, in the order in which a flow passes them."""

from pegmend.capture import Capture
from pegmend.options import PegmendOptions
from pegmend.outgoing import Outgoing
from pegmend.recovery import Recovery

addons = [PegmendOptions(), Outgoing(), Recovery(), Capture()]
"""In the `response` hook, recovery comes before capture: what is recorded is what the client gets."""
