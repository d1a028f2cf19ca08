"""Which mode a test runs in, and what is refused before anything runs."""

import pytest

from .conftest import Suite

ONE = "@pytest.mark.playhead\ndef test_a(playhead_tape):\n    print('mode is', playhead_tape.mode)\n    lookup('1')\n"


def mode(suite: Suite, *args: str) -> str:
    result = suite.run("-s", *args)
    (line,) = [line for line in result.outlines if "mode is" in line]
    return line.rpartition("mode is ")[2]


def test_the_option_beats_the_environment_beats_the_marker_beats_the_setting(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.write(ONE)
    suite.record()
    assert mode(suite) == "replay"
    suite.pytester.makepyprojecttoml("[tool.playhead.fixtures]\nmode = 'auto'\n")
    assert mode(suite) == "auto"
    suite.write(ONE.replace("playhead\n", "playhead(mode='check')\n", 1))
    assert mode(suite) == "check"
    monkeypatch.setenv("PLAYHEAD_MODE", " LIVE ")
    assert mode(suite) == "live"
    assert mode(suite, "--playhead= Replay ") == "replay"
    monkeypatch.setenv("PLAYHEAD_MODE", "  ")
    assert mode(suite, "--playhead=") == "check"


@pytest.mark.parametrize("given", ["option", "environment"])
def test_a_mode_that_is_none_ends_pytest_before_any_code_of_the_user(
    suite: Suite, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.write(ONE)
    (suite.path / "conftest.py").write_text("import os\nos.mkdir('imported')\n")
    if given == "environment":
        monkeypatch.setenv("PLAYHEAD_MODE", "play")
    result = suite.run(*(["--playhead=play"] if given == "option" else []))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'play'*the modes are live, record, replay, auto, check*"])
    assert not (suite.path / "imported").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("mode='play'", "*test_a: mode is 'play'*"),
        ("sett='x'", "*test_a: unknown option 'sett' of the marker playhead*"),
        ("'x'", "*test_a: the marker playhead takes options by name, not 'x'*"),
        ("repeat='often'", "*test_a: repeat is 'often'*"),
        ("http='api.example.com'", "*test_a: http is 'api.example.com'*"),
        ("set='../x'", "*test_a: '../x' is no name of a set*"),
        ("set=1", "*test_a: mode and set of the marker playhead are text*"),
    ],
)
def test_a_marker_that_cannot_be_is_an_error_of_collection(suite: Suite, options: str, said: str) -> None:
    suite.write(f"@pytest.mark.playhead({options})\ndef test_a():\n    os.mkdir('ran')\n")
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    assert not (suite.path / "ran").exists()


def test_a_near_miss_of_an_option_is_named(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead(sett='x')\ndef test_a():\n    pass\n")
    suite.run().stdout.fnmatch_lines(["*did you mean set?"])


def test_a_setting_that_cannot_be_is_an_error_only_where_fixtures_are_used(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.playhead.fixtures]\nmode = 'play'\n")
    suite.write("def test_a():\n    pass\n")
    suite.run().assert_outcomes(passed=1)
    suite.write(ONE)
    suite.run().stdout.fnmatch_lines(["*fixtures.mode is 'play'*"])


def test_markers_of_a_class_hold_for_its_tests_and_theirs_count_first(suite: Suite) -> None:
    suite.write(
        "@pytest.mark.playhead(set='checkout', repeat='last')\nclass TestA:\n"
        "    def test_a(self):\n        lookup('1')\n"
        "    @pytest.mark.playhead(set='basket')\n    def test_b(self):\n        lookup('1')\n"
    )
    suite.record()
    assert [name.partition("/")[0] for name in suite.files()] == ["basket", "checkout"]


def test_auto_records_what_is_missing_and_in_ci_misses(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(ONE)
    suite.record()
    suite.write(ONE + "    lookup('2')\n")
    suite.run("--playhead=auto").stdout.fnmatch_lines(["1 served, 1 recorded,*"])
    suite.write(ONE + "    lookup('2')\n    lookup('3')\n")
    monkeypatch.setenv("CI", "true")
    suite.run("--playhead=auto").assert_outcomes(failed=1)


def test_check_fails_for_what_has_changed_and_writes_nothing(suite: Suite) -> None:
    suite.write("def test_a(playhead_tape):\n    lookup('1')\n    token()\n")
    suite.record()
    before = [(suite.path / ".playhead/fixtures" / name).read_bytes() for name in suite.files("*.json")]
    result = suite.run("--playhead=check")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["orders.token changed: *"])
    assert [(suite.path / ".playhead/fixtures" / name).read_bytes() for name in suite.files("*.json")] == before


def test_live_runs_everything_and_leaves_no_trace(suite: Suite) -> None:
    suite.write(ONE)
    result = suite.run("--playhead=live")
    result.assert_outcomes(passed=1)
    assert not (suite.path / ".playhead").exists()
    result.stdout.no_fnmatch_line("*served*")


def test_another_folder_may_be_named(suite: Suite) -> None:
    suite.write(ONE)
    suite.record("--playhead-dir=recorded")
    assert (suite.path / "recorded/test_orders/test_a").is_dir()
    suite.run("--playhead-dir=recorded").assert_outcomes(passed=1)
    suite.run().assert_outcomes(errors=1)


def test_a_run_that_goes_live_says_so(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(ONE)
    suite.record().stdout.fnmatch_lines(["playhead: mode record: ops and requests run for real"])
    suite.run().stdout.no_fnmatch_line("playhead: mode*")
    monkeypatch.setenv("PLAYHEAD_MODE", "Auto")
    suite.run().stdout.fnmatch_lines(["playhead: mode auto: ops and requests run for real"])


def test_the_sequence_of_a_marker_may_keep_the_last(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead(sequence='last')\ndef test_a():\n    lookup('1')\n    lookup('1')\n")
    suite.record()
    assert len(suite.files()) == 1
    suite.run().assert_outcomes(passed=1)


def test_repeat_lets_the_last_answer_go_on(suite: Suite) -> None:
    text = "@pytest.mark.playhead(repeat=%r)\ndef test_a():\n    for _ in range(%d):\n        lookup('1')\n"
    suite.write(text % ("last", 1))
    suite.record()
    suite.write(text % ("last", 3))
    suite.run().assert_outcomes(passed=1)
    suite.write(text % ("error", 3))
    suite.run().stdout.fnmatch_lines(["*all 1 recorded answers of orders.lookup are used*"])
