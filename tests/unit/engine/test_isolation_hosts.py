import pytest

from playhead.engine.isolation.hosts import Endpoint, is_loopback, parse, parse_all, ports


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("api.openai.com", "api.openai.com", None),
        ("API.OpenAI.com:443", "api.openai.com", 443),
        ("https://llm.corp/v1", "llm.corp", 443),
        ("http://llm.corp/v1", "llm.corp", 80),
        ("http://127.0.0.1:8080/v1", "127.0.0.1", 8080),
        ("localhost:11434", "localhost", 11434),
        ("0.0.0.0:11434", "127.0.0.1", 11434),
        ("[::1]:8080", "::1", 8080),
        ("::1", "::1", None),
        ("*.openai.azure.com", "*.openai.azure.com", None),
        (" api.openai.com. ", "api.openai.com", None),
    ],
)
def test_endpoints_are_read_as_people_write_them(text: str, host: str, port: int | None) -> None:
    assert parse(text) == Endpoint(host, port)


def test_what_is_no_endpoint_opens_nothing() -> None:
    assert parse_all(["", "host:port", "api.openai.com:443"]) == [Endpoint("api.openai.com", 443)]


@pytest.mark.parametrize(
    ("endpoint", "host", "port", "fits"),
    [
        ("api.openai.com", "api.openai.com", 8080, True),
        ("api.openai.com:443", "api.openai.com", 8080, False),
        ("api.openai.com:443", "API.OPENAI.COM.", 443, True),
        ("api.openai.com", "api.openai.com.evil.example", 443, False),
        ("*.corp", "llm.corp", 443, True),
        ("*.corp", "corp", 443, False),
        ("*.corp", "llm.corp.evil", 443, False),
        ("bedrock-runtime.*.amazonaws.com", "bedrock-runtime.eu-west-1.amazonaws.com", 443, True),
        ("bedrock-runtime.*.amazonaws.com", "s3.eu-west-1.amazonaws.com", 443, False),
    ],
)
def test_an_endpoint_fits_its_hosts_and_no_other(endpoint: str, host: str, port: int, fits: bool) -> None:
    assert parse(endpoint).fits(host, port) is fits


def test_hosts_with_names_are_expected_at_the_port_of_https_when_none_is_named() -> None:
    named, local = ports(parse_all(["a.example", "b.example:8443", "127.0.0.1:9000", "localhost"]))
    assert (named, local) == ([443, 8443], [9000])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_is_known_by_every_name(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "localhost.evil.example", "::2", ""])
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(host)
