"""Writes the table of what was measured into docs/adapters.md: ``python tests/docs/adapters_page.py``."""

from pathlib import Path

from playhead.engine.capabilities import measured

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"
MARKS = {"supported": "yes", "unsupported": "**no**", "not_applicable": "–"}


def table() -> str:
    """Scenarios by adapters, and the reasons for all that is not a yes."""
    known = measured()
    names = list(known.adapters)
    lines = ["| scenario | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    versions = [f"{a.distribution} {a.version}" if a.distribution else "" for a in known.adapters.values()]
    lines.append("| *measured with* | " + " | ".join(versions) + " |")
    for scenario, title in known.titles.items():
        cells = [MARKS[a.found[scenario][0]] if scenario in a.found else "not run" for a in known.adapters.values()]
        lines.append(f"| {scenario}: {title.replace('``', '`')} | " + " | ".join(cells) + " |")
    lines += ["", "Why not:", ""]
    for name, adapter in known.adapters.items():
        reasons: dict[str, list[str]] = {}
        for scenario, (verdict, reason) in adapter.found.items():
            if verdict != "supported":
                reasons.setdefault(("**not supported**: " if verdict == "unsupported" else "") + reason, []).append(
                    scenario
                )
        lines += [f"- `{name}`: " + "; ".join(f"{', '.join(ids)}: {why}" for why, ids in reasons.items())]
    return "\n".join(lines)


def text(page: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(text(PAGE.read_text("utf-8")), "utf-8")
