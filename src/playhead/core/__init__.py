"""Pure rules: no I/O, clock, randomness, environment or async."""
