"""How playhead sits inside frameworks."""
