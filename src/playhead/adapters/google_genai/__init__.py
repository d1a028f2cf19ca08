"""google-genai: functions that the client calls by itself (automatic function calling) behind the seam.

Its model calls are seen on the wire; while a session is open, asynchronous clients send through ``httpx`` instead of
``aiohttp``, where the wire cannot look.
"""

from playhead.adapters.google_genai.activation import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
