"""``playhead fixtures export``."""

from dataclasses import asdict

from playhead.cli.context import Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS


def export(
    session: str, /, *, context: Ctx, dir: str | None = None, set: str = "", yes: bool = False
) -> Result:  # fmt: skip
    """Make fixtures of the ops that a session called.

    Ops are those of the modules in fixtures.ops of the settings. What a fixture folder does not take (errors of the
    environment, results that do not fit, calls of other tools) is listed. Without --yes the plan is printed and nothing
    is written. Exit code 1 when nothing can be exported.

    Args:
        session: Id, shortened id, last or last~N.
        dir: The fixture folder, if not the project's.
        set: The set; left out, the shared set.
        yes: Write the fixtures.
    """
    from playhead.engine.fixtures.export import plan_export
    from playhead.engine.fixtures.project_ops import load_ops, op_modules
    from playhead.engine.fixtures.scope import folder_of

    ops = load_ops(context.project, op_modules(context.project))
    store = context.store
    found = store.sessions.resolve(session)
    folder = folder_of(context.project, dir)
    folder.place(set)
    plan = plan_export(found, store.sessions.nodes(found), ops, context.project.redactor(), set)
    if yes and plan.fixtures:
        plan.write(folder, SYSTEM_IDS(), now=SYSTEM_CLOCK.now())
    rows = [{"tool": each.tool, "occurrence": each.occurrence, "file": each.name} for each in plan.fixtures]
    left = [asdict(each) for each in plan.left_out]
    text: list[Block] = [Table(("tool", "occurrence", "file"), rows, empty="no call makes a fixture")]
    if left:
        text.append(Table(("tool", "node", "reason"), left))
    if rows:
        done = f"written to {folder.place(set)}"
        text.append(Fields([("fixtures", done if yes else f"nothing is written yet; --yes does: {done}")]))
    return Result(
        data={"session": found, "set": set, "folder": str(folder.root), "written": yes, "fixtures": rows,
              "left_out": left},
        text=text,
        exit_code=0 if rows else 1,
    )  # fmt: skip
