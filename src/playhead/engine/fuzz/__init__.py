"""Fuzzing: bad calls made, fed back to models and tried on tools; probes of tools that read alike."""
