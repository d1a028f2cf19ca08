"""HTTP fixtures in the clients: httpx, httpx2, requests, urllib3 and aiohttp, as far as the user's code imports them.

`intercepting` wraps them for the time in which fixtures with HTTP are in force. Each module here knows one library;
what answers a request and what is recorded of it is decided in `engine.http_exchange`.
"""

from playhead.adapters.http.activation import intercept_for_good, intercepting

__all__ = ["intercept_for_good", "intercepting"]
