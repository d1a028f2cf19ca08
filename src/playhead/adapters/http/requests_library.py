"""requests: stands on urllib3, which is wrapped for it; here is only told how a response will be read."""

import functools
from typing import Any

from playhead.engine.http_exchange import streaming
from playhead.engine.patching import Patches


def wrap(module: Any, patches: Patches) -> None:
    patches.wrap(module.adapters.HTTPAdapter, "send", _send)


def _send(original: Any) -> Any:
    @functools.wraps(original)
    def send(adapter: Any, request: Any, stream: bool = False, *args: Any, **kwargs: Any) -> Any:
        token = streaming.set(bool(stream))
        try:
            return original(adapter, request, stream, *args, **kwargs)
        finally:
            streaming.reset(token)

    return send
