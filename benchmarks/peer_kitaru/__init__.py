"""The same scripted agents bare, with kitaru's adapter and with ours: ``python -m benchmarks.peer_kitaru``.

kitaru and its adapters come from the package index into an environment of their own. Its adapters record into its API
server, which stores in PostgreSQL: both are started here, on loopback, from its own package and the PostgreSQL of this
machine (its ``kitaru login --local`` starts the same two in containers). ``KITARU_API_URL`` names a server that runs
already. Where something is missing the reason is told and nothing is measured.
"""
