"""Found by Python at its start in the processes of `playhead fixtures run --http`: requests are fixtures from then on.

The ``sitecustomize`` that this one stands in front of, if there is one, runs first.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - before anything else: pathlib costs


def _run_the_other() -> None:
    places = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_the_other()

if "PLAYHEAD_FIXTURE_RUN" in os.environ:
    from playhead.adapters.fixtures import join_command

    join_command()
