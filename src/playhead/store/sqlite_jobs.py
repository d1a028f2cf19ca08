"""Jobs and tasks in SQLite. What changes while a task lives stands in columns, so a claim is one statement."""

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from playhead.core import jobs
from playhead.core.codec import FORMAT, decode, dump, encode, load
from playhead.core.jobs import Beat, Job, Offer, Task
from playhead.core.lifecycle import OnFailure, TaskEvent, TaskStatus
from playhead.core.values import JSON, ErrorInfo, Replay
from playhead.errors import ConflictError, NotFoundError
from playhead.store import job_queries as sql
from playhead.store import job_steps, lookup
from playhead.store.connection import Connections, translated
from playhead.store.notices import Notices
from playhead.store.ports import JobMade, Page
from playhead.store.queries import column_text
from playhead.store.sqlite_records import add_replay, replay_row, set_replay
from playhead.store.sqlite_rows import of_doc, to_doc


class SqliteJobs:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._watching: sqlite3.Connection | None = None
        self._watching_lock = threading.Lock()

    def create(self, job: Job, tasks: Sequence[Task], replays: Sequence[Replay] = ()) -> JobMade:
        job_steps.check(job, tasks, replays)
        with self._connections.writing() as c:
            known = _by_key(c, job.idempotency_key)
            if known is not None:
                held = tuple(_tasks(c, known.id))
                return JobMade(job=known, tasks=held, replays=_replays(c, held), created=False)
            try:
                for replay in replays:
                    add_replay(c, replay)
                c.execute(sql.ADD_JOB, _job_columns(job))
                c.executemany(sql.ADD_TASK, [_task_columns(task) for task in tasks])
                needs = [(column_text(task.id), column_text(need)) for task in tasks for need in task.needs]
                c.executemany(sql.ADD_NEED, needs)
            except sqlite3.IntegrityError as error:
                raise ConflictError(f"job {job.id!r} exists, or a task or replay of it ({error})") from error
            held = tuple(_tasks(c, job.id))
            return JobMade(job=_found(_Rows(c).job(job.id), "job", job.id), tasks=held, replays=_replays(c, held))

    def get(self, job_id: str) -> Job:
        with self._connections.reading() as c:
            return _found(_Rows(c).job(job_id), "job", job_id)

    def resolve(self, text: str) -> str:
        def nth_newest(n: int) -> str | None:
            row = c.execute(sql.NTH_JOB, (n,)).fetchone()
            return None if row is None else row[0]

        def fitting(part: str) -> list[str]:
            return [row[0] for row in c.execute(sql.FITTING_JOBS, {"text": column_text(part), "size": len(part)})]

        with self._connections.reading() as c:
            return lookup.resolve(text, "job", nth_newest=nth_newest, fitting=fitting)

    def find(
        self, *, status: str | None = None, kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page:
        after = lookup.Place((1 << 63) - 1, "") if cursor is None else lookup.place_of(cursor)
        values = {"status": status, "kind": kind, "at": after.at, "id": after.id, "limit": max(limit, 0) + 1}
        with self._connections.reading() as c:
            rows = c.execute(sql.JOB_PAGE, values).fetchall()
        shown = rows[: max(limit, 0)]
        more = len(rows) > len(shown) and shown
        return Page(
            items=tuple(of_doc(Job, format, doc) for _, _, format, doc in shown),
            next_cursor=lookup.cursor_of(lookup.Place(*shown[-1][:2])) if more else None,
        )

    def task(self, task_id: str) -> Task:
        with self._connections.reading() as c:
            return _found(_Rows(c).task(task_id), "task", task_id)

    def tasks(self, job_id: str) -> list[Task]:
        with self._connections.reading() as c:
            return _tasks(c, job_id)

    # the worker's side

    def pending(self, offer: Offer) -> bool:
        with self._connections.reading() as c:
            return c.execute(sql.PENDING, {**_offer(offer), "limit": 1}).fetchone() is not None

    def claim(self, offer: Offer, *, token: str, now: int, until: int) -> list[Task]:
        values = {**_offer(offer), "worker": offer.worker, "token": token, "now": now, "until": until}
        with self._connections.writing() as c:
            rows = c.execute(sql.CLAIMED_BY, (token,)).fetchall() or c.execute(sql.CLAIM, values).fetchall()
            taken = [_task(row, ()) for row in rows]
            taken = [_with_needs(c, task) for task in taken]
            job_steps.begun(_Rows(c), taken, now)
        return sorted(taken, key=lambda t: (-t.priority, t.created_at, t.id))

    def start(self, task_id: str, token: str, *, now: int, replay: Replay | None = None) -> Task:
        with self._connections.writing() as c:
            return job_steps.start(_Rows(c), task_id, token, now, replay)

    def heartbeat(self, held: Mapping[str, str], *, until: int) -> dict[str, Beat]:
        with self._connections.writing() as c:
            return job_steps.heartbeat(_Rows(c), held, until)

    def save_replay(self, task_id: str, token: str, replay: Replay) -> None:
        with self._connections.writing() as c:
            job_steps.save_replay(_Rows(c), task_id, token, replay)

    def end(
        self, task_id: str, token: str, event: TaskEvent, *, now: int, error: ErrorInfo | None = None,
        result: JSON = None, replay: Replay | None = None,
    ) -> Task:  # fmt: skip
        with self._connections.writing() as c:
            return job_steps.end(_Rows(c), task_id, token, event, now, error, result, replay)

    def lose(self, task_id: str, token: str, *, now: int, error: ErrorInfo) -> Task:
        with self._connections.writing() as c:
            return job_steps.lose(_Rows(c), task_id, token, now, error)

    def expire(self, *, now: int, error: ErrorInfo) -> list[Task]:
        if not any(jobs.has_expired(task, now) for task in self.held()):
            return []  # mostly so; it needs no write lock
        with self._connections.writing() as c:
            return job_steps.expire(_Rows(c), _held(c), now, error)

    def held(self) -> list[Task]:
        with self._connections.reading() as c:
            return _held(c)

    def cancel(self, job_id: str, *, now: int) -> Job:
        with self._connections.writing() as c:
            return job_steps.cancel(_Rows(c), job_id, now)

    def pulse(self) -> int:
        with self._watching_lock, translated(self._connections.path):
            if self._watching is None:
                self._watching = self._connections.open_apart()
            return self._watching.execute("PRAGMA data_version").fetchone()[0]

    def notices(self) -> Notices:
        self.pulse()  # while a connection is open, the log that all writes go to is there
        return Notices(Path(f"{self._connections.path}-wal"))

    def close(self) -> None:
        with self._watching_lock:
            if self._watching is not None:
                self._watching.close()
                self._watching = None


class _Rows:
    """`job_steps.Rows` of one transaction."""

    def __init__(self, c: sqlite3.Connection) -> None:
        self._c = c

    def task(self, task_id: str) -> Task | None:
        row = self._c.execute(f"{sql.TASKS} WHERE id = ?", (column_text(task_id),)).fetchone()
        return None if row is None else _with_needs(self._c, _task(row, ()))

    def put_task(self, task: Task) -> None:
        self._c.execute(sql.SET_TASK, _task_columns(task))

    def tasks(self, job_id: str) -> list[Task]:
        return _tasks(self._c, job_id)

    def job(self, job_id: str) -> Job | None:
        row = self._c.execute("SELECT format, doc FROM jobs WHERE id = ?", (column_text(job_id),)).fetchone()
        return None if row is None else of_doc(Job, *row)

    def put_job(self, job: Job) -> None:
        self._c.execute(sql.SET_JOB, _job_columns(job))

    def replay(self, replay_id: str) -> Replay | None:
        return replay_row(self._c, replay_id)

    def put_replay(self, replay: Replay) -> None:
        set_replay(self._c, replay)

    def is_open(self, job_id: str) -> bool:
        return self._c.execute(sql.IS_OPEN, (column_text(job_id),)).fetchone() is not None

    def is_needed(self, task_id: str) -> bool:
        return (
            self._c.execute("SELECT 1 FROM task_needs WHERE needs = ? LIMIT 1", (column_text(task_id),)).fetchone()
            is not None
        )


def _found(value: Any, what: str, id: str) -> Any:
    if value is None:
        raise NotFoundError(f"no {what} {id!r}")
    return value


def _by_key(c: sqlite3.Connection, key: str | None) -> Job | None:
    if key is None:
        return None
    row = c.execute("SELECT format, doc FROM jobs WHERE idempotency_key = ?", (column_text(key),)).fetchone()
    return None if row is None else of_doc(Job, *row)


def _tasks(c: sqlite3.Connection, job_id: str) -> list[Task]:
    rows = c.execute(f"{sql.TASKS} WHERE job = ? ORDER BY pk", (column_text(job_id),)).fetchall()
    needs: dict[str, list[str]] = {}
    for task_id, need in c.execute(sql.NEEDS_OF_JOB, (column_text(job_id),)):
        needs.setdefault(task_id, []).append(need)
    return [_task(row, tuple(needs.get(row[0], ()))) for row in rows]


def _held(c: sqlite3.Connection) -> list[Task]:
    return [_with_needs(c, _task(row, ())) for row in c.execute(f"{sql.TASKS} WHERE {sql.IS_HELD}").fetchall()]


def _replays(c: sqlite3.Connection, tasks: Sequence[Task]) -> tuple[Replay, ...]:
    found: list[Replay] = []
    for task in tasks:
        replay_id = jobs.replay_id_of(task)
        replay = replay_row(c, replay_id) if replay_id is not None else None
        if replay is not None:
            found.append(replay)
    return tuple(found)


def _with_needs(c: sqlite3.Connection, task: Task) -> Task:
    needs = c.execute("SELECT needs FROM task_needs WHERE task = ? ORDER BY pk", (column_text(task.id),)).fetchall()
    return replace(task, needs=tuple(row[0] for row in needs)) if needs else task


def _offer(offer: Offer) -> dict[str, JSON]:
    return {
        "versions": None if offer.versions is None else json.dumps(offer.versions),
        "kinds": None if offer.kinds is None else json.dumps(offer.kinds),
        "labels": json.dumps(offer.labels),
        "job": None if offer.job_id is None else column_text(offer.job_id),
        "limit": max(offer.limit, 0),
    }


def _job_columns(job: Job) -> dict[str, JSON]:
    key = job.idempotency_key
    return {
        "id": column_text(job.id),
        "kind": job.kind,
        "status": job.status.value,
        "created_at": job.created_at,
        "idempotency_key": None if key is None else column_text(key),
        "format": FORMAT,
        "doc": to_doc(job),
    }


_IN_DOC = ("payload", "error", "result")


def _task_columns(task: Task) -> dict[str, JSON]:
    whole = dump(task)
    return {
        "id": column_text(task.id),
        "job": column_text(task.job_id),
        "kind": task.kind,
        "status": task.status.value,
        "rank": -task.priority,
        "created_at": task.created_at,
        "attempt": task.attempt,
        "on_failure": task.on_failure.value,
        "agent_version": task.agent_version,
        "labels": json.dumps(task.labels),
        "worker": task.worker,
        "token": task.token,
        "lease_until": task.lease_until,
        "claimed_at": task.claimed_at,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "cancel": int(task.cancel),
        "format": FORMAT,
        "doc": encode({name: whole[name] for name in _IN_DOC if name in whole}),
    }


def _task(row: Sequence[Any], needs: tuple[str, ...]) -> Task:
    values = dict(zip(sql.TASK_COLUMNS, row, strict=True))
    more = decode(values.pop("doc"))
    error = more.get("error")
    format = values.pop("format")
    return Task(
        id=values["id"],
        job_id=values["job"],
        kind=values["kind"],
        created_at=values["created_at"],
        payload=more.get("payload"),
        status=TaskStatus(values["status"]),
        attempt=values["attempt"],
        priority=-values["rank"],
        needs=needs,
        on_failure=OnFailure(values["on_failure"]),
        agent_version=values["agent_version"],
        labels=tuple(json.loads(values["labels"])),
        worker=values["worker"],
        token=values["token"],
        lease_until=values["lease_until"],
        claimed_at=values["claimed_at"],
        started_at=values["started_at"],
        ended_at=values["ended_at"],
        cancel=bool(values["cancel"]),
        error=None if error is None else load(ErrorInfo, error, format=format, trusted=True),
        result=more.get("result"),
    )


def lost_jobs(c: sqlite3.Connection) -> list[str]:
    """What may be wrong with jobs, in words."""
    counted = [(text, c.execute(query).fetchone()[0]) for text, query in sql.PROBLEMS.items()]
    return [f"{count} {text}" for text, count in counted if count]
