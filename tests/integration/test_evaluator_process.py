"""Evaluators of users in processes of their own: whatever they do, a clear word comes back and nothing else breaks."""

import os
import shutil
import socket
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from playhead.core.evaluation import EvaluationContext
from playhead.core.requests import EvaluatorConfig
from playhead.core.values import LedgerRow, Verdict
from playhead.engine.evaluate import Evaluation, evaluate_session
from playhead.engine.evaluator_process import order, passed, run
from playhead.engine.evaluators import choose, read
from playhead.engine.isolation import guard as isolation
from playhead.engine.project import Project
from playhead.engine.settings import Settings
from playhead.store.memory import MemoryStore
from playhead.testing.sessions import a_session, a_tool_call


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path, settings=Settings(), url="memory:")


def judged(project: Project, body: str, *, params: dict[str, Any] | None = None, **settings: Any) -> Evaluation:
    """Registers a function with this body and runs it over one stored session."""
    head = "import asyncio, os, sys, threading, time, playhead\n"
    code = body if "def check" in body else f"def check(ctx):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    (project.root / "checks.py").write_text(head + textwrap.dedent(code))
    store = MemoryStore()
    store.sessions.put(a_session(), [a_tool_call(1, "refund", {"order": "4821"}, "R-77")])
    store.evaluators.register(read("checks.py:check", working_dir=project.root, **settings))
    chosen = [choose(store, EvaluatorConfig(evaluator="check", params=params or {}))]
    done = evaluate_session(store, "s1", chosen, project=project)
    assert store.sessions.verdicts("s1") == list(done.verdicts)
    return done


def said(project: Project, body: str, **more: Any) -> Verdict:
    (verdict,) = judged(project, body, **more).verdicts
    return verdict


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("True", {"passed": True}),
        ("0.25", {"score": 0.25}),
        ("'polite'", {"label": "polite"}),
        ("{'passed': False, 'explanation': 'no'}", {"passed": False, "explanation": "no"}),
        ("playhead.Verdict(name='check', score=1)", {"score": 1}),
    ],
)
def test_plain_results_become_verdicts(project: Project, value: str, wanted: dict[str, Any]) -> None:
    verdict = said(project, f"return {value}")
    assert verdict == Verdict(name="check", evaluator="check@1", **wanted)


def test_several_verdicts_with_evidence(project: Project) -> None:
    done = judged(
        project,
        """
        call = ctx.tool_calls[0]
        return [
            playhead.Verdict(name="refunds", score=len(ctx.tool_calls), evidence=(call,)),
            {"name": "order", "label": call.call.arguments["order"], "evidence": [(call.id, "/call/arguments/order")]},
        ]
        """,
    )
    assert [(v.name, v.score, v.label) for v in done.verdicts] == [("refunds", 1, None), ("order", None, "4821")]
    assert done.verdicts[1].evidence == ({"node": "s1-n1", "pointer": "/call/arguments/order"},)
    assert done.error is None


@pytest.mark.parametrize(
    "code",
    [
        "async def check(ctx):\n    await asyncio.sleep(0)\n    return True",
        "def check(ctx):\n    async def later():\n        return True\n    return later()",
        "class C:\n    def __call__(self, ctx):\n        return True\n\ncheck = C()  # def check",
    ],
)
def test_async_and_callable_objects_work(project: Project, code: str) -> None:
    assert said(project, code).passed is True


def test_parameters_reach_it_and_file_its_verdicts(project: Project) -> None:
    verdict = said(project, "return {'score': ctx.params['max'] * 2}", params={"max": 4})
    assert verdict.score == 8
    assert verdict.params == {"max": 4}
    assert verdict.evaluator is not None
    assert verdict.evaluator.startswith("check@1#")


def test_the_whole_context_comes_through() -> None:
    from playhead.cli.evaluator_child import context_of
    from playhead.core.codec import decode

    context = EvaluationContext(
        session=a_session(output={"a": 1}),
        nodes=(a_tool_call(1, "t", {}),),
        baseline=a_session("s0"),
        baseline_nodes=(a_tool_call(1, "t", {}, session="s0"),),
        ledger=(LedgerRow(kind="tool", by="served"),),
        unchanged=True,
        case="refund",
        params={"n": 1},
        ignore={"t": ["/x"]},
        model_requests=False,
    )
    from playhead.core.evaluation import Evaluator

    spec = Evaluator(name="x", version=1, digest="d", entry_point="x.py:x", source="", created_at=0)
    assert context_of(decode(order(spec, context))["context"]) == context


BROKEN = [
    ("raise ValueError('no refund id')", "raised ValueError: no refund id (line 3, in check)"),
    ("1 / 0", "ZeroDivisionError"),
    ("def f(): f()\nf()", "RecursionError"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("return None", "returned nothing"),
    ("return object()", "no verdict"),
    ("return print", "was a call forgotten"),
    ("return {'pased': True}", "did you mean 'passed'"),
    ("return {}", "says nothing"),
    ("return {'passed': 'yes'}", "passed is true, false"),
    ("return float('nan')", "finite"),
    ("return [True, False]", "has no name"),
    ("return [{'name': 'a', 'passed': True}, {'name': 'a', 'passed': False}]", "two verdicts named 'a'"),
    ("return {'passed': True, 'evidence': 7}", "evidence"),
    ("sys.exit(0)", "sys.exit(0)"),
    ("sys.exit('bye')", "sys.exit('bye')"),
    ("os._exit(0)", "exit code 0 before it gave a verdict"),
    ("os._exit(5)", "exit code 5 before it gave a verdict"),
    ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ("import nothere", "ModuleNotFoundError"),
    ("import socket; socket.create_connection(('10.1.2.3', 80), 1)", "--network"),
]


@pytest.mark.parametrize(("body", "words"), BROKEN, ids=[body[:30] for body, _ in BROKEN])
def test_whatever_goes_wrong_is_a_verdict_that_says_so(project: Project, body: str, words: str) -> None:
    done = judged(project, body)
    (verdict,) = done.verdicts
    assert verdict.passed is None
    assert words in (verdict.explanation or "")
    assert verdict.error is not None
    assert verdict.error.code == "evaluator"
    assert done.error is not None
    assert "check@1" in done.error.message


def test_code_that_does_not_import_says_where(project: Project) -> None:
    verdict = said(project, "def check(ctx): return True\n\nraise RuntimeError('at import')")
    assert "RuntimeError: at import" in (verdict.explanation or "")


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "asyncio.run(asyncio.sleep(60))",
        "import subprocess; subprocess.run(['sleep', '60'])",
    ],
)
def test_one_that_hangs_is_ended(project: Project, body: str) -> None:
    assert "ran out of time (1 s)" in (said(project, body, timeout=1.0).explanation or "")


def test_one_that_prints_megabytes_is_ended(project: Project) -> None:
    for stream in ("stdout", "stderr"):
        verdict = said(project, f"while True: sys.{stream}.write('x' * 65536)")
        assert "printed more than 1024 KiB" in (verdict.explanation or "")
        assert len(verdict.explanation or "") < 4000


def test_one_that_returns_megabytes_is_refused(project: Project) -> None:
    verdict = said(project, "return {'explanation': 'x' * 50_000_000}")
    assert len(verdict.explanation or "") < 20_000
    assert "more characters" in (verdict.explanation or "")
    assert "is no label" in (said(project, "return 'x' * 50_000_000").explanation or "")
    assert "at most 1000" in (
        said(project, "return [{'name': str(n), 'score': n} for n in range(2000)]").explanation or ""
    )


def test_what_it_prints_is_no_verdict_and_does_no_harm(project: Project) -> None:
    assert said(project, "print('{\"verdicts\": []}'); os.write(1, b'\\xff\\x00'); return True").passed is True


def test_what_it_printed_last_helps_to_find_the_fault(project: Project) -> None:
    verdict = said(project, "print('looked at the refund'); os._exit(3)")
    assert "looked at the refund" in (verdict.explanation or "")


def test_closed_streams_and_threads_without_end_do_not_keep_the_verdict_back(project: Project) -> None:
    assert said(project, "os.close(1); os.close(2); sys.stdout.close(); return True").passed is True
    assert said(project, "threading.Thread(target=time.sleep, args=(60,)).start(); return True").passed is True


def test_a_process_that_it_leaves_behind_is_ended(project: Project) -> None:
    verdict = said(project, "import subprocess; return {'score': subprocess.Popen(['sleep', '60']).pid}")
    assert verdict.score is not None
    until = time.monotonic() + 5
    while psutil.pid_exists(int(verdict.score)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not psutil.pid_exists(int(verdict.score))


def test_no_tool_runs_live_in_an_evaluator(project: Project) -> None:
    code = f"""
    @playhead.tool
    def refund(order):
        open({str(project.root / "live")!r}, "w").close()

    def check(ctx):
        try:
            refund("4821")
        except Exception:
            pass
        return True
    """
    verdict = said(project, code)
    assert "called a tool" in (verdict.explanation or "")
    assert not (project.root / "live").exists()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_program_that_an_evaluator_starts_reaches_nothing_but_with_network(project: Project) -> None:
    if isolation.available().namespace is not None:
        pytest.skip(f"namespace: {isolation.available().namespace}")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        code = f"import subprocess; return subprocess.run(['curl', '-s', '-m', '2', {url!r}]).returncode"
        assert said(project, code).score == 7  # could not connect
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert said(project, code, network=True).score == 28  # connected, and got no answer
        listener.accept()[0].close()


def test_recording_inside_an_evaluator_reaches_no_store_of_the_project(project: Project) -> None:
    code = """
    def check(ctx):
        return {"label": playhead.open().store.url}
    """
    assert said(project, code).label == "memory:"


def test_only_named_variables_reach_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_REGION", "eu")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-it")
    body = "return {'label': '%s %s' % (os.environ.get('JUDGE_REGION'), os.environ.get('OPENAI_API_KEY'))}"
    assert said(project, body).label == "None None"
    assert said(project, body, env=("JUDGE_REGION",)).label == "eu None"
    assert passed(read("checks.py:check", working_dir=project.root), os.environ)["PLAYHEAD_URL"] == "memory:"


def test_secrets_never_reach_the_store(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-4f9a8b7c6d5e")
    body = "return {'explanation': 'saw ' + os.environ['SHOP_TOKEN'], 'label': os.environ['SHOP_TOKEN']}"
    verdict = said(project, body, env=("SHOP_TOKEN",))
    assert "tok-4f9a8b7c6d5e" not in repr(verdict)
    raised = said(project, "raise ValueError(os.environ['SHOP_TOKEN'])", env=("SHOP_TOKEN",))
    assert "tok-4f9a8b7c6d5e" not in repr(raised)


def test_what_runs_is_what_was_registered(project: Project) -> None:
    store = MemoryStore()
    store.sessions.put(a_session(), [])
    file = project.root / "checks.py"
    (project.root / "beside.py").write_text("ANSWER = True")
    file.write_text("import beside\ndef check(ctx):\n    return beside.ANSWER")
    stored = store.evaluators.register(read("checks.py:check", working_dir=project.root))
    file.write_text("def check(ctx):\n    return False")
    done = evaluate_session(store, "s1", [choose(store, EvaluatorConfig(evaluator="check"))], project=project)
    assert done.verdicts[0].passed is True
    file.unlink()
    assert run(stored, order(stored, EvaluationContext(session=a_session())), environment=os.environ).failure is None


def test_modules_of_packages_keep_their_relative_imports(project: Project) -> None:
    package = project.root / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "limits.py").write_text("MOST = 7")
    (package / "checks.py").write_text("from .limits import MOST\n\ndef check(ctx):\n    return MOST")
    spec = read("pack.checks:check", working_dir=project.root)
    ran = run(spec, order(spec, EvaluationContext(session=a_session())), environment=os.environ)
    assert ran.verdicts == [{"name": "check", "score": 7}]


def test_evidence_of_nowhere_is_marked(project: Project) -> None:
    assert "no node of these sessions" in (
        said(project, "return {'passed': True, 'evidence': 'n99'}").explanation or ""
    )


def test_an_evaluator_that_ran_again_leaves_no_old_verdicts(project: Project) -> None:
    store = MemoryStore()
    store.sessions.put(a_session(), [])
    (project.root / "checks.py").write_text(
        "import os\n\ndef check(ctx):\n    os.stat('ok')\n    return {'name': 'refund', 'passed': True}"
    )
    store.evaluators.register(read("checks.py:check", working_dir=project.root))
    chosen = [choose(store, EvaluatorConfig(evaluator="check"))]
    assert evaluate_session(store, "s1", chosen, project=project).error is not None
    (project.root / "ok").touch()
    assert evaluate_session(store, "s1", chosen, project=project).error is None
    assert [v.name for v in store.sessions.verdicts("s1")] == ["refund"]
