CREATE TABLE agent_versions (
	id TEXT NOT NULL, 
	agent TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	state BLOB NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (agent, number), 
	UNIQUE (agent, state)
);

CREATE TABLE calls (
	agent INTEGER NOT NULL, 
	tool INTEGER NOT NULL, 
	"key" BLOB NOT NULL, 
	session INTEGER NOT NULL, 
	ended_at INTEGER NOT NULL, 
	PRIMARY KEY (agent, tool, "key", session)
)
 WITHOUT ROWID;

CREATE TABLE cohort_sessions (
	session TEXT NOT NULL, 
	cohort TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	PRIMARY KEY (session, cohort, version)
);

CREATE TABLE cohorts (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (name, version)
);

CREATE TABLE evaluators (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (name, version)
);

CREATE TABLE experiment_runs (
	id TEXT NOT NULL, 
	experiment TEXT NOT NULL, 
	created_at INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX experiment_runs_by_time ON experiment_runs (created_at, id);

CREATE TABLE experiments (
	name TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE jobs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created_at INTEGER NOT NULL, 
	idempotency_key TEXT, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (idempotency_key)
);

CREATE INDEX jobs_by_time ON jobs (created_at, id);

CREATE TABLE names (
	pk INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (name)
);

CREATE TABLE replays (
	id TEXT NOT NULL, 
	baseline_session_id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created_at INTEGER NOT NULL, 
	idempotency_key TEXT, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (idempotency_key)
);

CREATE INDEX replays_by_baseline ON replays (baseline_session_id, created_at);

CREATE INDEX replays_by_time ON replays (created_at, id);

CREATE TABLE sessions (
	pk INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	agent TEXT NOT NULL, 
	agent_version TEXT, 
	project TEXT DEFAULT 'default' NOT NULL, 
	origin TEXT NOT NULL, 
	status TEXT NOT NULL, 
	started_at INTEGER NOT NULL, 
	conversation TEXT, 
	baseline_id TEXT, 
	external_format TEXT, 
	external_instance TEXT, 
	external_id TEXT, 
	revision INTEGER NOT NULL, 
	metadata TEXT NOT NULL, 
	digest TEXT, 
	epoch INTEGER DEFAULT 0 NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	UNIQUE (id)
);

CREATE INDEX sessions_by_agent ON sessions (agent, started_at, id);

CREATE INDEX sessions_by_baseline_id ON sessions (baseline_id, started_at) WHERE baseline_id IS NOT NULL;

CREATE INDEX sessions_by_conversation ON sessions (conversation, started_at) WHERE conversation IS NOT NULL;

CREATE INDEX sessions_by_external ON sessions (external_id, external_format) WHERE external_id IS NOT NULL;

CREATE INDEX sessions_by_time ON sessions (started_at, id);

CREATE TABLE shared (
	pk INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	size INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (digest)
);

CREATE TABLE suite_cases (
	pk INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	case_id TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (suite, case_id)
);

CREATE TABLE suite_lines (
	pk INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (pk)
);

CREATE INDEX suite_lines_by_suite ON suite_lines (suite, kind);

CREATE TABLE suite_runs (
	id TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	created_at INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX suite_runs_by_time ON suite_runs (created_at, id);

CREATE TABLE suites (
	name TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE task_needs (
	pk INTEGER NOT NULL, 
	task TEXT NOT NULL, 
	needs TEXT NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (task, needs)
);

CREATE INDEX task_needs_by_needs ON task_needs (needs);

CREATE TABLE tasks (
	pk INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	job TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	status TEXT NOT NULL, 
	rank INTEGER NOT NULL, 
	created_at INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	on_failure TEXT NOT NULL, 
	agent_version TEXT, 
	labels TEXT NOT NULL, 
	worker TEXT, 
	token TEXT, 
	lease_until INTEGER, 
	claimed_at INTEGER, 
	started_at INTEGER, 
	ended_at INTEGER, 
	cancel INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (id)
);

CREATE INDEX tasks_by_job ON tasks (job, status);

CREATE INDEX tasks_by_status ON tasks (status, rank, created_at, id);

CREATE TABLE trial_requests (
	digest TEXT NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (digest)
);

CREATE TABLE trials (
	run TEXT NOT NULL, 
	case_id TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (run, case_id, n)
);

CREATE TABLE segments (
	pk INTEGER NOT NULL, 
	session INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	final INTEGER NOT NULL, 
	nodes INTEGER NOT NULL, 
	first_message INTEGER NOT NULL, 
	messages INTEGER NOT NULL, 
	first_list INTEGER NOT NULL, 
	lists INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	heads BLOB NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (session, n), 
	FOREIGN KEY(session) REFERENCES sessions (pk) ON DELETE CASCADE
);

CREATE TABLE session_shared (
	session INTEGER NOT NULL, 
	shared INTEGER NOT NULL, 
	PRIMARY KEY (session, shared), 
	FOREIGN KEY(session) REFERENCES sessions (pk) ON DELETE CASCADE, 
	FOREIGN KEY(shared) REFERENCES shared (pk)
)
 WITHOUT ROWID;

CREATE INDEX session_shared_by_shared ON session_shared (shared);

CREATE TABLE session_tags (
	tag TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	PRIMARY KEY (tag, session), 
	FOREIGN KEY(session) REFERENCES sessions (pk) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX session_tags_by_session ON session_tags (session);

CREATE TABLE verdicts (
	pk INTEGER NOT NULL, 
	session INTEGER NOT NULL, 
	evaluator TEXT NOT NULL, 
	name TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	doc BLOB NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (session, evaluator, name), 
	FOREIGN KEY(session) REFERENCES sessions (pk) ON DELETE CASCADE
);
