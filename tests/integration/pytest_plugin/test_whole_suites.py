"""What only a whole suite tells: orphans, leftovers of common sets; and runs in several processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Suite

THREE = """
@pytest.mark.playhead
def test_a():
    lookup("1")

@pytest.mark.playhead(set="shared")
def test_b():
    lookup("2")

@pytest.mark.playhead(set="shared")
def test_c():
    lookup("3")
"""


def test_sets_without_a_test_are_told_when_everything_was_collected_r36(suite: Suite) -> None:
    suite.write(THREE)
    suite.record()
    suite.write(THREE.replace("test_a", "test_renamed"))
    suite.write("def test_d():\n    pass\n", "test_more.py")
    told = "sets without a test: test_orders/test_a"
    suite.run("--playhead-report=r.json").stdout.fnmatch_lines(["*1 orphan", told])
    assert json.loads((suite.path / "r.json").read_text())["orphans"] == ["test_orders/test_a"]
    suite.run(".").stdout.fnmatch_lines([told])
    some = ("-k test_b", "test_orders.py", "test_orders.py::test_b", "--deselect test_more.py::test_d",
            "--ignore test_more.py")  # fmt: skip
    for args in some:
        suite.run(*args.split()).stdout.no_fnmatch_line("*orphan*")
    suite.run("--playhead-unused=ignore").stdout.no_fnmatch_line("sets without a test*")


def test_the_folders_of_testpaths_are_the_whole_suite(suite: Suite) -> None:
    suite.pytester.makepyprojecttoml("[tool.pytest.ini_options]\ntestpaths = ['checks']\npythonpath = ['.']\n")
    suite.write(THREE, "checks/test_orders.py")
    suite.record()
    suite.write(THREE.replace("test_a", "test_renamed"), "checks/test_orders.py")
    for args in ([], ["checks"], ["."]):
        suite.run(*args).stdout.fnmatch_lines(["sets without a test: checks.test_orders/test_a"])


def test_sets_that_code_made_are_no_orphans(suite: Suite) -> None:
    suite.write("def test_a():\n    with playhead.fixtures('record', set='x/y'):\n        lookup('1')\n")
    suite.run()
    suite.write(THREE)
    suite.record()
    suite.run().stdout.no_fnmatch_line("sets without a test*")


def test_leftovers_of_the_shared_set_are_told_when_all_tests_ran_to_their_end(suite: Suite) -> None:
    suite.write(THREE)
    suite.record()
    suite.run().stdout.no_fnmatch_line("not asked for*")
    suite.write(THREE.replace('lookup("3")', 'lookup("2")'))
    suite.run().stdout.fnmatch_lines(["*1 leftover,*", "not asked for by any test: op.orders_lookup.*.json"])
    suite.run("-k", "test_b").stdout.no_fnmatch_line("not asked for*")
    result = suite.run("--playhead-strict")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    suite.write(THREE.replace('lookup("3")', "pytest.skip()"))
    suite.run("--playhead-strict").stdout.no_fnmatch_line("not asked for*")


def test_workers_of_xdist_make_one_summary(suite: Suite) -> None:
    suite.write(THREE)
    suite.record()
    text = THREE.replace("test_a", "test_renamed").replace('lookup("3")', 'lookup("2")')
    suite.write(text + "\n@pytest.mark.playhead(allow_empty=True)\ndef test_e():\n    lookup('nine')\n")
    result = suite.run("-p", "xdist.plugin", "-p", "xdist.looponfail", "-n2", "--playhead-report=r.json",
                       f"--junitxml={suite.path}/junit.xml")  # fmt: skip
    result.stdout.fnmatch_lines_random(
        [
            "2 served, 0 recorded, 2 missed, *",
            "sets without a test: test_orders/test_a",
            "missed test_orders.py::test_e:*",
        ]
    )
    report = json.loads((suite.path / "r.json").read_text())
    assert sorted(test["test"] for test in report["tests"]) == [
        "test_orders.py::test_b", "test_orders.py::test_c", "test_orders.py::test_e", "test_orders.py::test_renamed",
    ]  # fmt: skip
    assert (suite.path / "junit.xml").read_text().count('name="playhead_served"') == 4


def test_workers_record_one_set_together_r27(suite: Suite) -> None:
    names = "".join(f"@pytest.mark.playhead(set='shared')\ndef test_{n}():\n    lookup('{n}')\n" for n in "abcd")
    suite.write(names)
    result = suite.record("-p", "xdist.plugin", "-p", "xdist.looponfail", "-n2")
    result.assert_outcomes(passed=4)
    assert len(suite.files()) == 4
    suite.run().assert_outcomes(passed=4)


def test_a_marker_that_cannot_be_is_told_with_xdist_too(suite: Suite) -> None:
    suite.write("@pytest.mark.playhead(sett=1)\ndef test_a():\n    pass\n")
    result = suite.run("-p", "xdist.plugin", "-p", "xdist.looponfail", "-n1")
    result.stdout.fnmatch_lines(["*unknown option 'sett' of the marker playhead*"])
    assert result.ret != 0


def test_a_suite_that_uses_nothing_imports_nothing_and_sees_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import sys\ndef test_a():\n    found = sorted(name for name in sys.modules if name.startswith('playhead'))\n"
        "    assert found == ['playhead', 'playhead.pytest_plugin', 'playhead.pytest_plugin.names',\n"
        "                     'playhead.pytest_plugin.plugin'], found\n"
        "    assert not {'pydantic', 'sqlalchemy', 'orjson'} & set(sys.modules)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "playhead.pytest_plugin.plugin", "-q"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "playhead" not in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith((".", "__"))) == [
        "pytest.ini", "test_a.py",
    ]  # fmt: skip


def test_pytest_finds_the_plugin_by_itself() -> None:
    from importlib.metadata import entry_points

    (point,) = [each for each in entry_points(group="pytest11") if each.name == "playhead"]
    assert point.value == "playhead.pytest_plugin.plugin"
