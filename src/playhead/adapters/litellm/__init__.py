"""LiteLLM: its model calls are seen on the wire; here is the watch that none goes out another way.

Providers whose requests the wire does not know (Bedrock's own form, Cohere's, ...) would leave a recording without
model calls. Such a call is warned of while recording, and stops a replay.
"""

from playhead.adapters.litellm.activation import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
