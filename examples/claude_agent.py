"""Records a Claude query with a shell command, and replays it with neither shell nor model.

    python examples/claude_agent.py

The program that the SDK brings really runs; a scripted server on loopback stands in for the Messages API, so no key is
needed. Take ``env`` out of the options to ask the real one.
"""

import os
import tempfile
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

import playhead
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner
from playhead.testing.servers import Call, ModelServer, Reply

COMMAND = {"command": "echo ran >> log.txt; wc -l < log.txt", "description": "Counts"}
SCRIPT = [Reply(calls=[Call("Bash", COMMAND)]), Reply("The command ran once.")]


def environment(folder: Path) -> dict[str, str]:
    """What keeps the program to itself and to the scripted server."""
    return {
        "ANTHROPIC_BASE_URL": os.environ["EXAMPLE_URL"],
        "ANTHROPIC_API_KEY": "none",
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


@playhead.agent("counter")
async def counter(folder: str, prompt: str) -> str:
    options = ClaudeAgentOptions(
        model="claude-sonnet-4-5",
        allowed_tools=["Bash"],
        permission_mode="dontAsk",
        setting_sources=[],
        cwd=folder,
        env=environment(Path(folder)),
    )
    answer = ""
    async for message in PlayheadClaudeRunner().query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            answer = message.result or ""
    return answer


async def main(folder: str) -> None:
    with ModelServer(SCRIPT) as server:
        os.environ["EXAMPLE_URL"] = server.url
        print("recorded:", await counter(folder, "How often did it run?"))
    playhead.flush()
    result = playhead.replay("last", agent=counter, model_policy={"type": "history"})
    print("replayed:", result.output)
    print("answered by:", ", ".join(f"{row.tool} {row.by}" for row in result.ledger if row.kind == "tool"))
    print("runs of the command:", len((Path(folder) / "log.txt").read_text().splitlines()))


if __name__ == "__main__":
    import asyncio

    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        asyncio.run(main(place))
