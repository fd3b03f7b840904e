"""What the layer with the tail rests on in mitmproxy: these fail when a release changes it."""

import inspect

from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.proxy import layer
from mitmproxy.proxy.layers import http as http_layers

from pegmend.stream import ResponseTailHook, TailHttpLayer, TailHttpStream


def test_the_state_that_is_extended_exists_and_ends_with_the_end_of_message() -> None:
    source = inspect.getsource(http_layers.HttpStream.state_stream_response_body)
    assert "ResponseEndOfMessage" in source
    assert 'self.flow.response.stream(b"")' in source
    assert "self.send_response(already_streamed=True)" in source
    assert "self.server_state = self.state_stream_response_body" in inspect.getsource(
        http_layers.HttpStream.start_response_stream
    )


def test_streams_are_made_in_one_place() -> None:
    assert inspect.getsource(http_layers).count(" HttpStream(ctx, ") == 1
    assert "HttpStream(ctx, stream_id)" in inspect.getsource(http_layers.HttpLayer.make_stream)
    assert TailHttpLayer.make_stream is not http_layers.HttpLayer.make_stream


def test_events_wait_while_a_hook_runs() -> None:
    assert "self._paused_event_queue.append(event)" in inspect.getsource(layer.Layer.handle_event)
    assert "_paused_event_queue" in inspect.getsource(http_layers.HttpStream.check_killed)


def test_the_classes_can_take_each_others_place() -> None:
    assert TailHttpStream.__init__ is http_layers.HttpStream.__init__
    assert TailHttpLayer.__init__ is http_layers.HttpLayer.__init__


def test_an_addon_that_chose_a_layer_is_respected() -> None:
    assert "if nextlayer.layer:" in inspect.getsource(NextLayer.next_layer)


def test_the_hook_has_its_name() -> None:
    assert ResponseTailHook.name == "response_tail"
