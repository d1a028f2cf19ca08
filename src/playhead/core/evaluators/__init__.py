"""The evaluators that every store knows, each ``name@1``: functions of what they are given and nothing else."""
