"""Records the model calls of HTTP clients: whatever sends chat completions, responses, messages or generateContent
through `httpx` or `httpx2` (the openai and anthropic clients among them), sync and async, plain and streamed.

`install()` wraps ``Client.send`` and ``AsyncClient.send`` of both libraries and does nothing while no session is open.
Bytes pass unchanged in both directions. Inside the model seam of a framework's adapter the wire stays silent.
"""

from playhead.adapters.wire.activation import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
