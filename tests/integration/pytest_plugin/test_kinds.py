"""Every kind of test: asynchronous ones, those of unittest, fixtures of a class or module, requests and the guard."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from .conftest import Suite


def recorded_and_replayed(suite: Suite, *args: str, passed: int) -> None:
    """Records the suite, then replays it with ops that must not run."""
    suite.record(*args).assert_outcomes(passed=passed)
    ops = suite.path / "ops.py"
    text = ops.read_text()
    ops.write_text(text.replace("calls.append", "raise_it"))
    suite.run(*args).assert_outcomes(passed=passed)
    ops.write_text(text)


def test_asynchronous_tests_under_anyio(suite: Suite) -> None:
    suite.write(
        "import anyio\n"
        "@pytest.fixture(scope='module')\ndef anyio_backend():\n    return 'asyncio'\n"
        "@pytest.fixture(scope='module')\nasync def resource(anyio_backend):\n    lookup('resource')\n    yield 1\n"
        "@pytest.fixture\nasync def own(resource):\n    lookup('own')\n    yield\n    lookup('own end')\n"
        "@pytest.mark.anyio\n@pytest.mark.playhead\nasync def test_a(own):\n    lookup('a')\n"
        "@pytest.mark.anyio\nasync def test_b(own, playhead_tape):\n"
        "    async with anyio.create_task_group() as group:\n"
        "        for name in ('x', 'y'):\n            group.start_soon(anyio.to_thread.run_sync, lookup, name)\n"
    )
    recorded_and_replayed(suite, "-p", "anyio", passed=2)
    assert {name.rpartition("/")[0]: 0 for name in suite.files()}.keys() == {
        "test_orders/test_a", "test_orders/test_b", "test_orders/resource-fixture",
    }  # fmt: skip
    assert sum(name.startswith("test_orders/test_b/") for name in suite.files()) == 4


LOOPS = '''
"""What a plugin for asyncio does: one loop, with a context of its own, for all tests of a module."""
import asyncio, contextvars, inspect, pytest

@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as runner:
        runner.get_loop()
        yield runner

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        pyfuncitem.funcargs["runner"].run(pyfuncitem.obj(**arguments))
        return True
'''


def test_asynchronous_tests_whose_loop_outlives_them(suite: Suite) -> None:
    (suite.path / "conftest.py").write_text(LOOPS)
    suite.write(
        "@pytest.mark.playhead\nasync def test_a(runner):\n    lookup('a')\n"
        "@pytest.mark.playhead\nasync def test_b(runner):\n    lookup('b')\n"
        "async def test_plain(runner):\n    import ops\n    ops.calls = []\n"
    )
    recorded_and_replayed(suite, passed=3)
    assert [name.rpartition("/")[0] for name in suite.files()] == ["test_orders/test_a", "test_orders/test_b"]


def test_tests_of_unittest(suite: Suite) -> None:
    suite.write(
        "import unittest\n"
        "@pytest.mark.playhead\nclass TestA(unittest.TestCase):\n"
        "    @classmethod\n    def setUpClass(cls):\n        cls.found = lookup('class')\n"
        "    def setUp(self):\n        lookup('set up')\n"
        "    def tearDown(self):\n        lookup('tear down')\n"
        "    def test_a(self):\n        self.assertEqual(lookup('a')['id'], 'a')\n"
        "    def test_b(self):\n        with self.subTest(1):\n            lookup('b')\n"
    )
    recorded_and_replayed(suite, passed=2)
    sets = [name.rpartition("/")[0].rpartition("/")[2] for name in suite.files()]
    assert sets.count("TestA.test_a") == sets.count("TestA.test_b") == 3
    assert len(sets) == 7


def test_a_miss_in_a_test_of_unittest_is_no_ordinary_error(suite: Suite) -> None:
    text = (
        "import unittest\n@pytest.mark.playhead\nclass TestA(unittest.TestCase):\n"
        "    def test_a(self):\n        try:\n            lookup('{0}')\n        except Exception:\n            pass\n"
    )
    suite.write(text.format("a"))
    suite.record()
    suite.write(text.format("b"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup*"])


WIDE = """
@pytest.fixture(scope="class", params=["eu", "us"])
def account(request):
    lookup("open " + request.param)
    yield request.param
    lookup("close " + request.param)

@pytest.mark.playhead
class TestA:
    def test_a(self, account):
        lookup("a")
    def test_b(self, account):
        lookup("b")

def test_plain():
    print("calls", calls)
"""


def test_fixtures_of_a_class_have_a_set_of_their_own_whichever_test_comes_first(suite: Suite) -> None:
    suite.write(WIDE)
    suite.record().assert_outcomes(passed=5)
    own = [name for name in suite.files() if "account-fixture" in name]
    assert len(own) == 4
    assert len({name.rpartition("/")[0] for name in own}) == 2
    suite.run("-k", "test_b").assert_outcomes(passed=2, deselected=3)
    result = suite.run("-s")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*calls []", "8 served,*"])


def test_a_miss_in_the_fixture_of_a_class_fails_its_tests_and_ends_what_it_began(suite: Suite) -> None:
    suite.write(WIDE)
    suite.record()
    suite.write(WIDE.replace('lookup("open "', 'lookup("reopen "'))
    result = suite.run()
    result.assert_outcomes(errors=4, passed=1)
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup"])
    suite.write(WIDE.replace('lookup("close "', 'lookup("shut "'))
    result = suite.run()
    result.assert_outcomes(passed=4, errors=2)  # pytest ends the first account while it sets up the second
    result.stdout.fnmatch_lines(["*no recording answers orders.lookup", "*2 missed, 0 leftovers*"])
    suite.write(WIDE.replace('    lookup("close " + request.param)\n', ""))
    suite.run().stdout.fnmatch_lines(
        ["*2 leftovers,*", "not asked for by test_orders.py::TestA::account-fixture[[]0]:*"]
    )


class _Orders(BaseHTTPRequestHandler):
    seen = 0

    def do_GET(self) -> None:
        type(self).seen += 1
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "7")
        self.end_headers()
        self.wfile.write(b'{"n":1}')

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    _Orders.seen = 0
    server = HTTPServer(("127.0.0.1", 0), _Orders)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_requests_are_recorded_and_served(suite: Suite, server: HTTPServer) -> None:
    suite.write(
        "import httpx\n"
        "@pytest.mark.playhead(http=True, ignore=['/url/query/ts'])\ndef test_a(playhead_tape):\n"
        f"    url = 'http://127.0.0.1:{server.server_port}/?ts=' + os.urandom(4).hex()\n"
        "    assert httpx.get(url).json() == {'n': 1}\n"
    )
    suite.record().assert_outcomes(passed=1)
    suite.run().assert_outcomes(passed=1)
    assert _Orders.seen == 1


def test_a_replay_reaches_loopback_and_nothing_else_r22(suite: Suite, server: HTTPServer) -> None:
    suite.write(
        "import socket\n"
        "@pytest.mark.playhead\ndef test_a():\n    lookup('1')\n"
        f"    socket.create_connection(('127.0.0.1', {server.server_port})).close()\n"
        "@pytest.mark.playhead\ndef test_b():\n    lookup('1')\n"
        "    if os.environ.get('OUT'):\n        with pytest.raises(OSError):\n"
        "            socket.create_connection(('orders.example', 9))\n"
    )
    suite.record().assert_outcomes(passed=2)
    suite.pytester._monkeypatch.setenv("OUT", "1")  # pyright: ignore[reportPrivateUsage]
    result = suite.run()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_b*", "a connection to orders.example:9 was refused*"])


def test_a_tape_is_asked_for_by_name_too(suite: Suite) -> None:
    suite.write(
        "def test_a(request):\n    lookup('live')\n    tape = request.getfixturevalue('playhead_tape')\n"
        "    lookup('1')\n    assert len(tape.ledger) == 1\n"
        "@pytest.fixture\ndef through(playhead_tape):\n    return playhead_tape\n"
        "def test_b(through):\n    lookup('1')\n"
    )
    suite.record().assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)


EVERY_SCOPE = {
    "conftest.py": """
@pytest.fixture(scope="session")
def account():
    lookup("session")
    yield "account"
    lookup("session end")
""",
    "shop/__init__.py": "",
    "shop/conftest.py": """
@pytest.fixture(scope="package")
def shelf(account):
    return lookup("package")["id"]
""",
    "shop/test_a.py": """
def test_plain_comes_first(account, shelf):
    assert (account, shelf) == ("account", "package")
""",
    "shop/test_b.py": """
def setup_module():
    lookup("module")

def teardown_module():
    lookup("module end")

def setup_function(function):
    lookup("function") if "taped" in function.__name__ else None

@pytest.fixture(scope="module")
def basket():
    return lookup("basket")["id"]

def test_plain(basket):
    assert basket == "basket"

@pytest.mark.playhead
def test_taped(basket, shelf):
    lookup("body")

class TestA:
    def setup_class(cls):
        cls.found = lookup("class")

    def setup_method(self, method):
        lookup("method") if method.__name__ == "test_taped" else None

    def teardown_method(self, method):
        lookup("method end") if method.__name__ == "test_taped" else None

    def test_plain(self):
        assert self.found["id"] == "class"

    @pytest.mark.playhead
    def test_taped(self):
        lookup("body")
""",
    "test_z.py": """
@pytest.mark.playhead(mode="live")
def test_live(account):
    pass

def test_nothing_but_what_has_no_tape_has_run():
    assert calls == []
""",
}


def test_what_a_plain_test_sets_up_first_is_served_all_the_same_in_every_scope(suite: Suite) -> None:
    for name, text in EVERY_SCOPE.items():
        suite.write(text, name)
    suite.record("--ignore", "test_z.py").assert_outcomes(passed=5)
    found = {name.rpartition("/")[0] for name in suite.files()}
    assert {name.partition("-")[0] for name in found} == {
        "session/account", "shop/shelf", "shop.test_b/basket", "shop.test_b/_xunit_setup_module_fixture_shop_test_b",
        "shop.test_b/TestA._xunit_setup_class_fixture_TestA", "shop.test_b/test_taped", "shop.test_b/TestA.test_taped",
    }  # fmt: skip
    result = suite.run()
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["12 served, 0 recorded, 0 missed, 0 leftovers, 0 outdated, 0 orphans"])
    suite.run("-k", "plain or nothing").assert_outcomes(passed=4, deselected=3)
