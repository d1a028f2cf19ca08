"""The SQL of jobs and tasks. Values are always parameters."""

from playhead.core.jobs import HELD
from playhead.core.lifecycle import TASK, OnFailure, TaskStatus


def _listed(statuses: "frozenset[TaskStatus] | list[TaskStatus]") -> str:
    return ", ".join(sorted(f"'{status.value}'" for status in statuses))


_OPEN = _listed([status for status in TaskStatus if not TASK.is_final(status)])
_ENDED_BADLY = _listed([TaskStatus.FAILED, TaskStatus.TIMED_OUT, TaskStatus.ABANDONED])
IS_HELD = f"status IN ({_listed(HELD)})"

TASK_COLUMNS = (
    "id", "job", "kind", "status", "rank", "created_at", "attempt", "on_failure", "agent_version", "labels", "worker",
    "token", "lease_until", "claimed_at", "started_at", "ended_at", "cancel", "format", "doc",
)  # fmt: skip
_NAMES = ", ".join(TASK_COLUMNS)
TASKS = f"SELECT {_NAMES} FROM tasks"
ADD_TASK = f"INSERT INTO tasks ({_NAMES}) VALUES ({', '.join(f':{name}' for name in TASK_COLUMNS)})"
SET_TASK = f"UPDATE tasks SET {', '.join(f'{name} = :{name}' for name in TASK_COLUMNS if name != 'id')} WHERE id = :id"
ADD_NEED = "INSERT INTO task_needs (task, needs) VALUES (?, ?)"
NEEDS_OF_JOB = """
    SELECT task, needs FROM task_needs JOIN tasks ON tasks.id = task_needs.task WHERE tasks.job = ?
    ORDER BY task_needs.pk
"""
IS_OPEN = f"SELECT 1 FROM tasks WHERE job = ? AND status IN ({_OPEN}) LIMIT 1"

_FITTING = f"""
    SELECT id FROM tasks AS t WHERE t.status = 'pending'
        AND (:versions IS NULL OR t.agent_version IN (SELECT value FROM json_each(:versions)))
        AND (:kinds IS NULL OR t.kind IN (SELECT value FROM json_each(:kinds)))
        AND (:job IS NULL OR t.job = :job)
        AND (t.labels = '[]' OR NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) WHERE value NOT IN (SELECT value FROM json_each(:labels))))
        AND NOT EXISTS (
            SELECT 1 FROM task_needs AS n JOIN tasks AS needed ON needed.id = n.needs WHERE n.task = t.id
                AND needed.status != '{TaskStatus.COMPLETED.value}'
                AND NOT (needed.on_failure = '{OnFailure.IGNORE.value}' AND needed.status IN ({_ENDED_BADLY})))
    ORDER BY t.status, t.rank, t.created_at, t.id LIMIT :limit
"""
PENDING = _FITTING
CLAIM = f"""
    UPDATE tasks SET status = '{TaskStatus.CLAIMED.value}', attempt = attempt + 1, worker = :worker, token = :token,
        lease_until = :until, claimed_at = :now, started_at = NULL
    WHERE id IN ({_FITTING})
    RETURNING {_NAMES}
"""
CLAIMED_BY = f"{TASKS} WHERE status = '{TaskStatus.CLAIMED.value}' AND token = ?"

ADD_JOB = """
    INSERT INTO jobs (id, kind, status, created_at, idempotency_key, format, doc)
    VALUES (:id, :kind, :status, :created_at, :idempotency_key, :format, :doc)
"""
SET_JOB = "UPDATE jobs SET status = :status, format = :format, doc = :doc WHERE id = :id"
NTH_JOB = "SELECT id FROM jobs ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?"
FITTING_JOBS = """
    SELECT id FROM jobs WHERE id = :text OR substr(id, 1, :size) = :text OR substr(id, -:size) = :text
    ORDER BY id = :text DESC LIMIT 20
"""
JOB_PAGE = """
    SELECT created_at, id, format, doc FROM jobs
    WHERE (:status IS NULL OR status = :status) AND (:kind IS NULL OR kind = :kind) AND (created_at, id) < (:at, :id)
    ORDER BY created_at DESC, id DESC LIMIT :limit
"""

PROBLEMS = {
    "tasks of jobs that do not exist": "SELECT count(*) FROM tasks WHERE job NOT IN (SELECT id FROM jobs)",
    "jobs that have ended with tasks that may still be claimed": """
        SELECT count(DISTINCT jobs.id) FROM jobs JOIN tasks ON tasks.job = jobs.id
        WHERE jobs.status IN ('completed', 'failed', 'canceled') AND tasks.status = 'pending'
    """,
    "jobs that have not ended although every task has": f"""
        SELECT count(*) FROM jobs WHERE status IN ('pending', 'running')
            AND EXISTS (SELECT 1 FROM tasks WHERE job = jobs.id)
            AND NOT EXISTS (SELECT 1 FROM tasks WHERE job = jobs.id AND status IN ({_OPEN}))
    """,
}
