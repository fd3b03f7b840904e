"""A point at the end of a streamed response where an addon can wait for more to send.

mitmproxy hands each chunk of a stream to a synchronous callable and has no asynchronous hook before the end of the
message. The stream here asks for one: after the upstream's end and before the client sees it, `response_tail` is
triggered as long as the gate of the response wants it, and what the gate has ready then goes out at once.

It rests on internals of mitmproxy 12: the name and the shape of `HttpStream.state_stream_response_body`, the dictionary
`HttpLayer.streams` that `make_stream` fills, and `_paused_event_queue`. tests/test_stream_layer.py fails when one of
them changes.
"""

from dataclasses import dataclass

from mitmproxy import ctx, http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import HttpLayer, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._events import (
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseProtocolError,
)
from mitmproxy.proxy.tunnel import TunnelLayer

from pegmend.gate import FailureGate


@dataclass
class ResponseTailHook(commands.StartHook):
    """The upstream's part of a streamed response is over; more may be sent before the client sees the end."""

    flow: http.HTTPFlow


class TailHttpStream(HttpStream):
    """A stream that waits for the tail of a response."""

    def state_stream_response_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Send the tail before the end of the message."""
        gate = self.flow.response.stream if self.flow.response else None
        if isinstance(event, ResponseEndOfMessage) and isinstance(gate, FailureGate) and gate.failure is not None:
            gate.needs_tail = True
            while gate.needs_tail and not self._client_is_gone():
                gate.needs_tail = False  # the hook sets it again if there is more: an error in it ends the loop
                yield ResponseTailHook(self.flow)
                for chunk in gate.take():
                    yield SendHttp(ResponseData(self.stream_id, chunk), self.context.client)
        yield from super().state_stream_response_body(event)

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> layer.CommandGenerator[None]:
        """Where the upstream breaks off, what was held back goes out before the client hears of it."""
        gate = self.flow.response.stream if self.flow.response else None
        if isinstance(event, ResponseProtocolError) and isinstance(gate, FailureGate) and (held := gate.flush()):
            yield SendHttp(ResponseData(self.stream_id, held), self.context.client)
        yield from super().handle_protocol_error(event)

    def _client_is_gone(self) -> bool:
        # Events that come while a hook runs wait here.
        return any(isinstance(event, RequestProtocolError) for event in self._paused_event_queue)


class TailHttpLayer(HttpLayer):
    """An HTTP layer whose streams wait for the tail of a response."""

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        """Begin a stream."""
        self.streams[stream_id] = TailHttpStream(self.context.fork(), stream_id)
        yield from self.event_to_child(self.streams[stream_id], events.Start())


class StreamLayers:
    """Puts the layer in place of mitmproxy's own."""

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """Let mitmproxy choose the layers, and give the HTTP layer among them the streams with a tail."""
        ctx.master.addons.get("nextlayer").next_layer(nextlayer)
        chosen = nextlayer.layer
        while isinstance(chosen, TunnelLayer):
            chosen = chosen.child_layer
        if type(chosen) is HttpLayer:
            chosen.__class__ = TailHttpLayer
