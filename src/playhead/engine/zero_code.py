"""Whether runs of frameworks open sessions of their own: `playhead.install()` says yes, a replay by itself no."""

_wanted = [False]


def want_sessions(wanted: bool) -> None:
    """Sets whether an adapter that was installed, not wrapped explicitly, opens a session for a run outside of any."""
    _wanted[0] = wanted


def sessions_wanted() -> bool:
    """Read by adapters at each run, so it costs nothing to speak of."""
    return _wanted[0]
