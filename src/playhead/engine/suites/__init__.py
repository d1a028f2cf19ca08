"""Suites: built, labelled, run with a model or with the user's agent, kept up to date."""
