"""The release gate: criteria and two runs in, a verdict with reasons out."""
