"""Google ADK: a plugin that stands before an application's agents, their tools and models.

``Runner(..., plugins=[PlayheadPlugin()])`` (or in an ``App``) is the explicit form; `install()` adds it to
every runner.
"""

from playhead.adapters.google_adk.activation import install, is_installed, uninstall
from playhead.adapters.google_adk.plugin import PlayheadPlugin
from playhead.adapters.google_adk.starting import register

register()

__all__ = ["PlayheadPlugin", "install", "is_installed", "uninstall"]
