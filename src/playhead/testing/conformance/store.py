"""What every store must do. Subclass `StoreConformance` in a test module and give a fixture ``store``::

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self):
            store = MyStore()
            yield store
            store.close()

The store must be empty when a test gets it.
"""

from playhead.testing.conformance.evaluators import Evaluators
from playhead.testing.conformance.experiments import Cohorts, Experiments
from playhead.testing.conformance.jobs import JobsCanceled, JobsClaimed, JobsFenced, JobsMade
from playhead.testing.conformance.recording import LargeAndShared, Payloads, Recording, Threads
from playhead.testing.conformance.records import Changing, Finding, History, Putting, Records
from playhead.testing.conformance.suites import SuiteRuns, Suites

__all__ = ["StoreConformance"]


class StoreConformance(
    Recording, Payloads, LargeAndShared, Putting, Finding, Changing, History, Records, Threads, JobsMade, JobsClaimed,
    JobsFenced, JobsCanceled, Evaluators, Suites, SuiteRuns, Cohorts, Experiments,
):  # fmt: skip
    """Every test of the port."""
