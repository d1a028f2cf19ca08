"""Every exception of playhead.

::

    BaseException
     └─ ReplayStop                  latched stop of a replay; never caught as an Exception
    Exception
     └─ PlayheadError
         ├─ UsageError              the caller's mistake (exit code 2)
         │   ├─ ConfigError         a setting or file of settings that cannot be used
         │   ├─ PolicyError         a policy, override or injection that is not valid
         │   ├─ NotFoundError       no such session, agent, replay ...
         │   ├─ AmbiguousIdError    a shortened id that fits several
         │   ├─ ConflictError       exists already, with other content
         │   │   └─ LeaseLostError  a worker's late word about a task that is no longer its own
         │   ├─ EntryPointError     an entry point that does not import or is not callable
         │   └─ RefusedError        preflight says no: not replayable, live tools, capabilities
         ├─ RecordingError          the recording's limit (exit code 1)
         │   ├─ MissError           a call that no recording answers
         │   │   └─ MissingFixtureError
         │   ├─ NoFixturesError     a replay of fixtures where none are recorded
         │   ├─ FixtureRunError     a run of fixtures that failed although no call was missed
         │   ├─ StaleError          a recorded value that no longer fits the declared schema
         │   ├─ OverrideNotAppliedError
         │   └─ NothingServedError      an unchanged replay in which no recording answered anything
         ├─ FormatError             a file or row that cannot be read as what it says it is (exit code 3)
         │   └─ FixtureFormatError  a fixture that is damaged or too new
         ├─ LiveError               the live world
         │   ├─ EgressBlockedError  a connection that the guard refused
         │   ├─ ModelAccessError    a model that could not be asked (llm policy, judge)
         │   ├─ AgentProcessError   the process of a replay that died or ran out of time
         │   ├─ EvaluatorError      an evaluator that came to no verdict
         │   ├─ OpsImportError      the modules of ops, which cannot be imported
         │   ├─ OpError             an op that failed or was refused; has a code of its own
         │   └─ ReplayedToolError   stands for a recorded exception whose class is not to be had
         └─ StoreError              the store (exit code 3)
             ├─ StoreBusyError      locked by somebody else
             │   └─ FixtureBusyError  another process is writing the fixtures
             ├─ StoreFullError      no space left
             ├─ StoreReadOnlyError
             ├─ StoreDamagedError   truncated, or not a database
             └─ StoreVersionError   written by a newer playhead

Each class has a stable ``code``; ``exit_code`` is what the command line returns for it.
"""

from typing import Any, ClassVar


class PlayheadError(Exception):
    """Base of every error that playhead raises on purpose.

    ``hint`` says what to do; it is printed under the message and is a member of JSON errors.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class UsageError(PlayheadError):
    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    code = "config"


class PolicyError(UsageError):
    code = "policy_invalid"


class NotFoundError(UsageError):
    code = "not_found"


class AmbiguousIdError(UsageError):
    code = "ambiguous_id"


class ConflictError(UsageError):
    code = "conflict"


class LeaseLostError(ConflictError):
    """A task is held by another attempt, or was ended otherwise: what this one did must not count."""

    code = "lease_lost"


class EntryPointError(UsageError):
    code = "entry_point"


class RefusedError(UsageError):
    """Preflight refused; ``details["reasons"]`` lists every reason, not only the first."""

    code = "refused"


class RecordingError(PlayheadError):
    code = "recording"
    exit_code = 1


class MissError(RecordingError):
    """A call that no recording answers, as it leaves the outer boundary of a run.

    ``details`` holds ``tool``, ``key``, ``reason`` and ``closest``.
    """

    code = "miss"


class MissingFixtureError(MissError):
    """A call that no fixture answers; ``details`` as of `MissError`, with ``folder`` and ``command``.

    All of them are attributes too: ``error.tool``, ``error.closest``.
    """

    code = "missing_fixture"

    tool: str
    key: str
    reason: str
    closest: dict[str, Any] | None
    folder: str
    command: str

    def __getattr__(self, name: str) -> Any:
        details: dict[str, Any] = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class NoFixturesError(RecordingError):
    """A replay was asked for, and nothing is recorded that it could serve."""

    code = "no_fixtures"


class FixtureRunError(RecordingError):
    """A run of fixtures failed at its end; ``details["reasons"]`` lists why."""

    code = "fixture_run"


class StaleError(RecordingError):
    code = "stale"


class OverrideNotAppliedError(RecordingError):
    code = "override_not_applied"


class NothingServedError(RecordingError):
    code = "nothing_served"


class FormatError(PlayheadError):
    code = "format"


class FixtureFormatError(FormatError):
    """A fixture that cannot be read as one; the text names file, line and reason."""

    code = "fixture_format"


class LiveError(PlayheadError):
    code = "live"


class EgressBlockedError(LiveError, ConnectionError):
    """A connection that the egress guard refused; a ``ConnectionError``, so clients treat it as one."""

    code = "egress_blocked"


class ModelAccessError(LiveError):
    code = "model_access"


class AgentProcessError(LiveError):
    code = "agent_process"


class EvaluatorError(LiveError):
    """An evaluator raised, hung, ended its process or returned nothing that is a verdict."""

    code = "evaluator"


class OpsImportError(LiveError):
    """A module of ops cannot be imported; raised where they are only looked at, such as by the doctor."""

    code = "ops_import"


class OpError(LiveError):
    """An op that failed, or was refused. ``code`` is one of ``OP_CODES``; ``str()`` is the message.

    Raised by ops themselves to fail with a status, and by playhead to refuse a call.
    """

    code = "op"
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None

    def __init__(
        self,
        message: str,
        code: str = "failed",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        if code not in OP_CODES:
            raise ValueError(f"{code!r} is no code of an OpError; the codes are {', '.join(OP_CODES)}")
        self.__dict__["code"] = code
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


OP_CODES = (
    "input", "config", "permission", "auth", "rate_limit", "timeout", "output", "missing_fixture", "failed",
)  # fmt: skip


class ReplayedToolError(LiveError):
    """Stands for a recorded exception whose own class cannot be rebuilt; ``str()`` is the recorded text."""

    code = "replayed_tool_error"

    def __init__(
        self,
        message: str,
        *,
        original_class: str,
        status: int | None = None,
        error_code: str | int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.original_class = original_class
        self.status = status
        self.error_code = error_code
        self.retryable = retryable
        self.retry_after = retry_after


class StoreError(PlayheadError):
    code = "store"


class StoreBusyError(StoreError):
    code = "store_busy"


class FixtureBusyError(StoreBusyError):
    """Another process is writing the fixtures; the text names it."""

    code = "fixture_busy"


class StoreFullError(StoreError):
    code = "store_full"


class StoreReadOnlyError(StoreError):
    code = "store_read_only"


class StoreDamagedError(StoreError):
    code = "store_damaged"


class StoreVersionError(StoreError):
    code = "store_version"


class ReplayStop(BaseException):
    """Ends a replay. A ``BaseException``, because frameworks and user code swallow exceptions.

    It is latched in the session: every later decision and model call raises it again. The outer boundary
    of the run turns it into ``error``.
    """

    def __init__(self, error: PlayheadError) -> None:
        super().__init__(error.message)
        self.error = error
