"""Tests with the marker or the fixture: what answers them, and what speaks against them in the end."""

import json
from pathlib import Path

import pytest

from playhead.pytest_plugin.marks import set_of

from .conftest import Suite

TWO = """
@pytest.mark.playhead
def test_marked():
    assert lookup("1")["id"] == "1"

def test_taped(playhead_tape):
    assert lookup(order_id="2", limit=5)["limit"] == 5
    if playhead_tape.mode == "replay":
        assert (playhead_tape.served, playhead_tape.misses, playhead_tape.leftovers) == (1, [], [])
        assert [row.status for row in playhead_tape.ledger] == ["served"]

def test_plain():
    assert lookup("3") and calls[-1] == "3"
"""


def test_the_marker_or_the_fixture_is_enough_and_a_replay_runs_no_op(suite: Suite) -> None:
    suite.write(TWO)
    suite.record().assert_outcomes(passed=3)
    assert [name.rpartition("/")[0] for name in suite.files()] == ["test_orders/test_marked", "test_orders/test_taped"]
    suite.write(TWO + "\ndef test_last():\n    assert calls == ['3']\n")
    result = suite.run()
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["2 served, 0 recorded, 0 missed, 0 leftovers, 0 outdated, 0 orphans"])


def test_a_replay_without_recordings_is_an_error_before_the_body_r21(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    os.mkdir('ran')\n    lookup('1')\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*NoFixturesError: nothing is recorded in *", "*pytest test_orders.py::test_a --playhead=record*"]
    )
    assert not (suite.path / "ran").exists()
    assert not (suite.path / ".playhead").exists()


def test_a_test_that_makes_no_calls_may_say_so(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead(allow_empty=True)\ndef test_a():\n    pass\n")
    suite.run().assert_outcomes(passed=1)


def test_a_replay_that_asks_for_nothing_of_its_set_fails(suite: Suite) -> None:
    suite.write("import os\n@pytest.mark.playhead\ndef test_a():\n    os.environ.get('X') or lookup('1')\n")
    suite.record()
    suite.pytester._monkeypatch.setenv("X", "1")  # pyright: ignore[reportPrivateUsage]
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*nothing was served although*"])


SWALLOWED = """
import contextlib

@pytest.fixture
def late(request):
    yield
    with contextlib.suppress(BaseException):
        if {teardown}:
            lookup("nine")

@pytest.mark.playhead
def test_a(late):
    lookup("1")
    with contextlib.suppress(BaseException):
        if {body}:
            lookup("nine")
"""


@pytest.mark.parametrize("place", ["body", "teardown"])
def test_a_miss_that_was_swallowed_fails_the_test_with_its_whole_text_r23(suite: Suite, place: str) -> None:
    suite.write(SWALLOWED.format(body=False, teardown=False))
    suite.record()
    suite.write(SWALLOWED.format(body=place == "body", teardown=place == "teardown"))
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "no recording answers orders.lookup",
            '  asked    {"order_id":"nine"}  key 1:*',
            "  closest  op.orders_lookup.*",
            '  differs  /order_id  recorded "1", asked "nine"',
            "  folder   *test_orders/test_a: 1 recording* of orders.lookup, 1 in all",
            "  record   pytest test_orders.py::test_a --playhead=record",
            "*= playhead =*",
            "1 served, 0 recorded, 1 missed, *",
            "missed test_orders.py::test_a: no recording answers orders.lookup",
            "*closest*op.orders_lookup*",
            '*differs*recorded "1", asked "nine"',
        ]
    )


def test_a_fixture_that_trips_in_its_end_does_not_stop_the_ends_of_others(suite: Suite) -> None:
    text = """
@pytest.fixture
def outer():
    yield
    os.mkdir("outer ended")

@pytest.fixture
def inner(outer):
    yield
    lookup("END")

@pytest.mark.playhead
def test_a(inner):
    lookup("1")

def test_b():
    pass
"""
    suite.write(text)
    suite.record().assert_outcomes(passed=2)
    suite.write(text.replace("END", "other"))
    (suite.path / "outer ended").rmdir()
    result = suite.run()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup"])
    assert (suite.path / "outer ended").exists()


def test_a_miss_in_the_body_is_one_failure_that_ends_in_the_line_of_the_test(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1', limit=10)\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*lookup('1', limit=10)", "*recorded (absent), asked 10"])
    result.stdout.no_fnmatch_line("*fixture_run.py*")


def test_a_test_that_fails_for_another_reason_shows_what_it_missed(suite: Suite) -> None:
    text = (
        "@pytest.mark.playhead\ndef test_a():\n    try:\n        lookup({0})\n    except BaseException:\n        {1}\n"
    )
    suite.write(text.format("'1'", "pass"))
    suite.record()
    suite.write(text.format("'2'", "raise AssertionError('empty basket')"))
    result = suite.run("--tb=native")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*empty basket*"])
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup*"])


@pytest.mark.parametrize(
    "end", ["assert False", "pytest.skip('not now')", "pytest.xfail('known')"], ids=["failed", "skipped", "xfailed"]
)
def test_what_did_not_pass_saves_nothing_r25(suite: Suite, end: str) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    before = {name: (suite.path / ".playhead/fixtures" / name).read_bytes() for name in suite.files("*.json")}
    suite.write(f"@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n    lookup('2')\n    {end}\n")
    suite.record()
    assert {name: (suite.path / ".playhead/fixtures" / name).read_bytes() for name in suite.files("*.json")} == before


def test_a_test_whose_fixture_fails_in_its_end_saves_nothing(suite: Suite) -> None:
    suite.write(
        "@pytest.fixture\ndef bad():\n    yield\n    assert 0\n\ndef test_a(bad, playhead_tape):\n    lookup('1')\n"
    )
    suite.record().assert_outcomes(passed=1, errors=1)
    assert suite.files() == []


def test_leftovers_are_told_of_tests_that_ran_to_their_end_r37(suite: Suite) -> None:
    both = "@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n    lookup('2')\n"
    suite.write(both)
    suite.record()
    suite.write(both.replace("    lookup('2')\n", ""))
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["1 served, *1 leftover,*", "not asked for by test_orders.py::test_a: op.orders_lookup.*"]
    )
    suite.run("--playhead-unused=ignore").stdout.no_fnmatch_line("not asked for*")
    result = suite.run("--playhead-unused=fail")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["op.orders_lookup.*.json was recorded and not asked for"])
    suite.run("--playhead-strict").assert_outcomes(passed=1, errors=1)
    for end in ("assert 0", "pytest.skip()"):
        suite.write(both.replace("lookup('2')", end))
        suite.run("--playhead-unused=fail").stdout.no_fnmatch_line("not asked for*")


def test_outdated_recordings_are_told_and_fail_under_strict(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    monkeypatch.setenv("ORDERS_VERSION", "2")
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*1 outdated*", "outdated in test_orders.py::test_a: op.orders_lookup.*"])
    suite.run("--playhead-strict").assert_outcomes(passed=1, errors=1)


def test_verify_replays_what_was_just_recorded(suite: Suite) -> None:
    suite.write("def test_a(playhead_tape):\n    lookup('1')\n\ndef test_b(playhead_tape):\n    lookup(token())\n")
    suite.record("--playhead-verify").assert_outcomes(passed=2)
    suite.write("import os\ndef test_a(playhead_tape):\n    lookup(os.urandom(4).hex())\n")
    result = suite.record("--playhead-verify")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup*", "*replay (--playhead-verify)*"])


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_orders.py::test_refund", "tests.test_orders/test_refund"),
        ("tests/test_orders.py::TestRefund::test_all", "tests.test_orders/TestRefund.test_all"),
        ("test_a.py::test_x[eu-1]", "test_a/test_x_eu-1_-32ace0"),
        ("a b/test_a.py::test_x", "a_b.test_a/test_x-870aaf"),
    ],
)
def test_a_set_is_named_after_its_test(nodeid: str, name: str) -> None:
    assert set_of(nodeid) == name


def test_names_that_read_alike_have_sets_of_their_own() -> None:
    ids = ["t.py::test[a::b/c]", "t.py::test[a__b_c]", "t.py::test[a:b]", "t.py::test_a_b_", f"t.py::{'x' * 80}",
           f"t.py::{'x' * 81}", "t.py::A::b", "t.py::A_b"]  # fmt: skip
    assert len({set_of(each) for each in ids}) == len(ids)
    assert all(name.count("/") == 1 and ".." not in name for name in map(set_of, ids))


def test_parameters_have_sets_of_their_own_and_one_of_them_may_be_marked(suite: Suite) -> None:
    suite.write(
        "@pytest.mark.parametrize('x', ['a', pytest.param('b/c', marks=pytest.mark.playhead)])\n"
        "def test_a(x):\n    lookup(x)\n"
    )
    suite.record().assert_outcomes(passed=2)
    (name,) = suite.files()
    assert name.startswith("test_orders/test_a_b_c_-")


def test_the_shared_set_answers_what_the_own_set_lacks(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead(set='shared')\ndef test_a():\n    lookup('1')\n")
    suite.record()
    assert suite.files()[0].startswith("op.orders_lookup")
    suite.write("@pytest.mark.playhead\ndef test_b():\n    lookup('1')\n")
    suite.run().assert_outcomes(passed=1)


def test_the_report_holds_every_call_and_is_private(suite: Suite) -> None:
    suite.write(TWO)
    suite.record()
    suite.run("--playhead-report=out/report.json", f"--junitxml={suite.path}/junit.xml")
    path = suite.path / "out/report.json"
    report = json.loads(path.read_text())
    assert report["playhead"] == "pytest/1"
    assert report["totals"] == {
        "served": 2, "recorded": 0, "missed": 0, "leftovers": 0, "outdated": 0, "orphans": 0,
    }  # fmt: skip
    first = report["tests"][0]
    assert (first["test"], first["set"], first["mode"]) == (
        "test_orders.py::test_marked", "test_orders/test_marked", "replay",
    )  # fmt: skip
    assert first["calls"][0]["tool"] == "orders.lookup"
    assert path.stat().st_mode & 0o077 == 0
    junit = (suite.path / "junit.xml").read_text()
    assert '<property name="playhead_served" value="1"' in junit
    assert junit.count('name="playhead_mode" value="replay"') == 2


def test_calls_that_missed_are_in_the_report(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('2')\n")
    suite.run("--playhead-report=report.json")
    (test,) = json.loads((suite.path / "report.json").read_text())["tests"]
    assert test["missed"] == 1
    assert test["misses"][0].startswith("no recording answers orders.lookup")


def test_a_report_is_written_where_no_test_used_fixtures(suite: Suite) -> None:
    suite.write("def test_a():\n    pass\n")
    suite.run("--playhead-report=r.json")
    assert json.loads((suite.path / "r.json").read_text())["tests"] == []


AGAIN = """
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item, nextitem):
    runtestprotocol(item, nextitem=nextitem, log=False)
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_test_that_is_run_again_is_served_again(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n    assert not calls\n")
    (suite.path / "conftest.py").write_text(AGAIN)
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 served, 0 recorded, 0 missed,*"])


def test_fields_are_ignored_by_op(suite: Suite) -> None:
    text = "@pytest.mark.playhead(ignore={'orders.lookup': ['/limit']})\ndef test_a():\n    lookup('1', limit=%d)\n"
    suite.write(text % 1)
    suite.record()
    suite.write(text % 2)
    suite.run().assert_outcomes(passed=1)


def test_what_a_test_that_was_marked_by_a_conftest_does_is_served(suite: Suite) -> None:
    suite.write("def test_a():\n    lookup('1')\n")
    (suite.path / "conftest.py").write_text(
        "import pytest\ndef pytest_collection_modifyitems(items):\n    items[0].add_marker(pytest.mark.playhead)\n"
    )
    suite.record().assert_outcomes(passed=1)
    suite.run().stdout.fnmatch_lines(["1 served*"])


def test_on_miss_goes_on_and_fails_in_the_end(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    suite.write(
        "@pytest.mark.playhead(on_miss='error_result')\ndef test_a():\n    lookup('1')\n"
        "    with pytest.raises(playhead.OpError, match='no recording'):\n        lookup('2')\n"
    )
    suite.run().assert_outcomes(passed=1, errors=1)


def test_every_miss_is_shown_also_of_one_op(suite: Suite) -> None:
    text = "@pytest.mark.playhead(on_miss='error_result')\ndef test_a():\n    lookup('1')\n"
    suite.write(text)
    suite.record()
    suite.write(
        text + "    for name in ('two', 'three'):\n        try:\n            lookup(name)\n"
        "        except playhead.OpError as error:\n            last = error\n    raise last\n"
    )
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*asked *three*", "*calls without a recording*", "*asked *two*"])


def test_a_damaged_fixture_fails_the_test_by_name(suite: Suite, fixtures_of: Path) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    suite.record()
    (fixtures_of / suite.files()[0]).write_text("{")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*is not readable as a fixture*"])


XFAIL = """
import os

@pytest.mark.playhead
@pytest.mark.xfail
def test_a():
    lookup(os.environ.get("ORDER", "1"))
    assert False
"""


def test_a_miss_of_a_test_that_is_marked_to_fail_fails_it(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(XFAIL.replace("assert False", "pass"))
    suite.record().assert_outcomes(xpassed=1)
    suite.write(XFAIL)
    suite.run().assert_outcomes(xfailed=1)
    monkeypatch.setenv("ORDER", "2")
    result = suite.run()
    result.assert_outcomes(xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


PARAMETERS = """
@pytest.mark.playhead
@pytest.mark.parametrize("token", [os.environ["SHOP_API_TOKEN"], os.environ["DB_PASSWORD"], "x"])
def test_a(token):
    lookup("1")
"""


def test_a_secret_in_the_id_of_a_test_is_no_name_of_a_set_and_in_no_report(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.write("import os\n" + PARAMETERS)
    monkeypatch.setenv("SHOP_API_TOKEN", "tok-aaaabbbbcccc")
    monkeypatch.setenv("DB_PASSWORD", "postgres")  # a plain word is no secret in a name
    result = suite.record("--playhead-report=report.json")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*UsageError: the name of the set of fixtures holds a secret (SHOP_API_TOKEN)*"])
    held = [path for path in suite.path.rglob("*") if "tok-aaaa" in path.name]
    held += [path for path in suite.path.rglob("*.json") if "tok-aaaa" in path.read_text()]
    assert held == []
    assert len(suite.files()) == 2


def test_no_recordings_is_one_error_and_not_its_chain(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.no_fnmatch_line("*During handling*")


ENDS = """
@pytest.fixture
def one():
    yield
    lookup("end")

@pytest.fixture
def two():
    yield
    lookup("end", 2)

@pytest.fixture
def other():
    yield
    assert not os.environ.get("ASKED")

@pytest.mark.playhead
def test_a(one, two):
    lookup(os.environ.get("ASKED", "1"))

@pytest.mark.playhead
def test_b(one, other):
    lookup(os.environ.get("ASKED", "1"))

@pytest.mark.playhead
def test_c(one):
    try:
        lookup(os.environ.get("ASKED", "1"))
    except BaseException:
        pass
"""


def test_a_miss_that_was_shown_is_not_shown_again_by_the_ends_of_fixtures(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.write(ENDS)
    suite.record().assert_outcomes(passed=3)
    monkeypatch.setenv("ASKED", "2")
    result = suite.run()
    result.assert_outcomes(failed=2, passed=1, errors=2)  # of b its own error, of c the miss that nobody saw
    text = result.stdout.str()
    assert "ERROR at teardown of test_a" not in text
    assert text.count("E       AssertionError: assert not '2'") == 1
    assert "ExceptionGroup" not in text
    assert text.count("asked    {") == 3
