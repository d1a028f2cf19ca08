"""Every command, declared once: its words, where it is, and what it does in one line.

Imported by each start of ``playhead``, so it imports nothing. The help text is made of this table; a command's own
module, and the parser, load only when the command runs.
"""

COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("init", "project:init", "Make a store in this folder and say how to record."),
    ("demo", "demo:demo", "Record, replay, fork and compare a small agent, offline."),
    ("doctor", "doctor:doctor", "Check the store, the environment and the adapters."),
    ("agent register", "registering:register", "Register how an agent is started, as a version of it."),
    ("agent list", "agents:list_agents", "List agents and their newest version."),
    ("agent show", "agents:show_agent", "Show an agent's versions, run spec and capabilities."),
    ("session list", "sessions:list_sessions", "List recorded sessions, newest first."),
    ("session show", "sessions:show_session", "Show a session's inputs, output, usage, cost and marks."),
    ("session tree", "sessions:tree", "Draw the calls of a session as a tree."),
    ("session diff", "comparing:diff", "Compare two sessions call by call."),
    ("session export", "exporting:export", "Write sessions as playhead JSON lines."),
    ("session delete", "sessions:delete", "Delete sessions and everything recorded in them."),
    ("session tag", "sessions:tag", "Add tags to a session, or remove them."),
    ("replay create", "creating:create", "Re-run a session's agent against its recording."),
    ("replay list", "replays:list_replays", "List replays, newest first."),
    ("replay get", "replays:get", "Show a replay: status, fidelity, ledger and verdicts."),
    ("replay compare", "comparing:compare", "Compare a replay with its baseline, or any two sessions."),
    ("job list", "jobs:list_jobs", "List jobs, newest first."),
    ("job get", "jobs:get", "Show a job and its tasks."),
    ("job watch", "jobs:watch", "Follow a job until it has ended."),
    ("job cancel", "jobs:cancel", "Cancel a job."),
    ("worker start", "worker:start", "Run jobs of this store until it is stopped."),
    ("inject", "injecting:inject", "Inject failures into a suite's cases and see how a model recovers."),
    ("fuzz", "fuzzing:fuzz", "Make bad calls of a suite's tools, and see what a model or the tool does with them."),
    ("lint", "linting:lint", "Say what makes tools hard to call rightly, and what changed in them."),
    ("cohort create", "cohorts:create", "Name a population of sessions, from a query or a list."),
    ("cohort freeze", "cohorts:freeze", "Ask a cohort's query again and freeze a new version."),
    ("cohort change", "cohorts:change", "Make a new version of a cohort with sessions added or removed."),
    ("cohort list", "cohorts:list_cohorts", "List cohorts and their newest version."),
    ("cohort show", "cohorts:show", "Show what a cohort holds."),
    ("experiment create", "experiments:create", "Name a change and the evaluators that judge it."),
    ("experiment list", "experiments:list_experiments", "List experiments."),
    ("experiment show", "experiments:show", "Show an experiment's arms, evaluators and runs."),
    ("experiment run", "experiments:run", "Run every arm of an experiment over a cohort."),
    ("experiment resume", "experiments:resume", "Go on with a run, or try its failed replays again."),
    ("experiment cancel", "experiments:cancel", "End a run."),
    ("experiment report", "experiments:report", "Show what a run found, arm by arm."),
    ("evaluator list", "evaluators:list_evaluators", "List built-in and registered evaluators."),
    ("evaluator show", "evaluators:show_evaluator", "Show an evaluator's versions, code and parameters."),
    ("evaluator scaffold", "evaluators:scaffold", "Write a file with an evaluator that works as it stands."),
    ("evaluator test", "evaluators:try_evaluator", "Call an evaluator on stored sessions and show its verdicts."),
    ("evaluator register", "evaluators:register", "Register a function as an evaluator."),
    ("suite build", "suites:build", "Make a suite of cases from sessions, or from files of a benchmark."),
    ("suite list", "suites:list_suites", "List the suites of the store."),
    ("suite show", "suites:show", "Show a suite's cases with label state and slice."),
    ("suite export", "suites:export", "Write a suite to a folder that is fit for git."),
    ("suite label", "suite_labels:label", "Give a suite's cases weak, mined or proposed labels, or facts."),
    ("suite review", "suite_labels:review", "Decide on labels, and see how far the rest can be trusted."),
    ("suite run", "suite_runs:run", "Try every case of a suite with one model or several, and score it."),
    ("suite rescore", "suite_runs:rescore", "Score the stored trials of a run again, with today's labels."),
    ("suite refresh", "suite_upkeep:refresh", "Plan new cases from recent sessions, and say how fresh a suite is."),
    ("suite retire", "suite_upkeep:retire", "Plan which cases are no longer run."),
    ("suite report", "suite_reports:report", "Show what a run of a suite scored, as text or as a page."),
    ("suite compare", "suite_reports:compare", "Compare runs of several models, and name the cheapest good enough."),
    ("suite diagnose", "suite_diagnose:diagnose", "Have a model propose changes of a suite's tools, as diffs."),
    ("gate", "releasing:gate", "Say whether a run may ship: pass, fail or inconclusive, with reasons."),
    ("plan", "planning:plan", "Say how many cases and runs are needed, and what a suite can see."),
    ("fixtures run", "fixture_running:run", "Run a command whose ops and requests are recorded, or served."),
    ("fixtures check", "fixture_running:check", "Run a command and compare what the world says now with its fixtures."),
    ("fixtures doctor", "fixture_doctor:doctor", "Look for damaged, incomplete, old and unsafe fixtures."),
    ("fixtures diff", "fixture_changing:diff", "Compare recordings: what they answer now and before."),
    ("fixtures rekey", "fixture_changing:rekey", "Make keys again from the arguments that fixtures hold."),
    ("fixtures prune", "fixture_changing:prune", "Remove fixtures that nothing needs any more."),
    ("fixtures export", "fixture_exporting:export", "Make fixtures of the ops that a session called."),
    ("fixtures import", "fixtures:import_cassettes", "Make HTTP fixtures of cassettes of vcrpy and its family."),
    ("fixtures list", "fixtures:list_fixtures", "List fixtures, set by set."),
    ("fixtures show", "fixtures:show_fixture", "Show one fixture: what was asked, what came, when it was recorded."),
    ("import", "importing:import_", "Import recordings made by other tools."),
    ("config", "project:config", "Show the settings in force and where each comes from."),
    ("version", "version:version", "Print the version of playhead."),
)

GLOBAL_OPTIONS = """\
Options of every command:
  --output text|json|jsonl  Form of the result: text on a terminal, else json.
  --url URL                 The store to use, in place of the project's own.
  --debug                   Show the traceback of an unexpected error.
  --help, -h                Show what a command takes.
"""

_HEAD = """\
Usage: playhead COMMAND [OPTIONS]

Recordings of AI-agent runs that you can run again.

Commands:
"""

_TAIL = """
An id may be shortened to any unique beginning or end of it; `last` is the newest session, `last~1` the one before.
Exit codes: 0 ok, 1 the answer is no, 2 usage or refused, 3 infrastructure, 4 inconclusive, 130 interrupted.
Start with `playhead demo`, or `playhead init` in your own project.
"""


def _lines(commands: tuple[tuple[str, str, str], ...]) -> str:
    return "".join(f"  {words:<18} {summary}\n" for words, _, summary in commands)


def top_help() -> str:
    """What ``playhead --help`` prints."""
    return f"{_HEAD}{_lines(COMMANDS)}\n{GLOBAL_OPTIONS}{_TAIL}"


def noun_help(noun: str) -> str | None:
    """What ``playhead NOUN`` prints when several commands start with the noun; None when none does."""
    commands = tuple(row for row in COMMANDS if row[0].startswith(f"{noun} "))
    if not commands:
        return None
    return f"Usage: playhead {noun} COMMAND [OPTIONS]\n\nCommands:\n{_lines(commands)}\n{GLOBAL_OPTIONS}"
