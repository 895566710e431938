//! The tables of the index, and how its file is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};

/// The version of the tables below. A file of an older version is emptied and filled again, because everything in
/// it can be read from the run directories.
const VERSION: i64 = 10;

/// The tables. A verdict is 1, 0, or NULL for no answer, so that `avg` is a rate over the answers and a missing
/// answer is never counted by mistake.
///
/// `decided` has the cases that are decided by a rate and not by each trial alone.
const TABLES: &str = "
CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    started TEXT NOT NULL,
    scripted INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    earlier_skill TEXT,
    not_in_history TEXT,
    sample TEXT,
    planned INTEGER NOT NULL DEFAULT 0,
    log_bytes INTEGER NOT NULL DEFAULT 0,
    exit INTEGER,
    cost_usd REAL,
    seconds REAL,
    trials INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    ungated INTEGER NOT NULL DEFAULT 0,
    examined INTEGER NOT NULL DEFAULT 0,
    examined_passed INTEGER NOT NULL DEFAULT 0,
    examined_failed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE cases (
    run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    suite TEXT NOT NULL,
    case_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (run, suite, case_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX cases_in_order ON cases (run, suite, place);
CREATE TABLE decided (
    run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    suite TEXT NOT NULL,
    case_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    arm TEXT NOT NULL,
    mode TEXT NOT NULL,
    passes INTEGER
);
CREATE INDEX decided_of_case ON decided (run, suite, case_id);
CREATE TABLE trials (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    id TEXT NOT NULL,
    suite TEXT NOT NULL,
    case_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    arm TEXT NOT NULL,
    mode TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    verdict INTEGER,
    why TEXT,
    ended TEXT NOT NULL,
    expect TEXT,
    fired INTEGER,
    outcome TEXT,
    cost_usd REAL,
    seconds REAL NOT NULL,
    tokens INTEGER NOT NULL,
    reused INTEGER NOT NULL,
    criteria INTEGER NOT NULL,
    criteria_passed INTEGER NOT NULL,
    shares INTEGER NOT NULL,
    share_sum REAL NOT NULL,
    setup TEXT,
    UNIQUE (run, id)
);
CREATE INDEX trials_of_setup ON trials (setup) WHERE setup IS NOT NULL;
CREATE INDEX trials_of_case ON trials (run, suite, case_id);
CREATE TABLE checks (
    trial INTEGER NOT NULL REFERENCES trials (n) ON DELETE CASCADE,
    id TEXT NOT NULL,
    required INTEGER NOT NULL,
    judged INTEGER NOT NULL,
    verdict INTEGER,
    score REAL,
    PRIMARY KEY (trial, id)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE said USING fts5 (case_id, output, content = '', contentless_delete = 1);
";

const DROP_TABLES: &str = "
DROP TABLE IF EXISTS said;
DROP TABLE IF EXISTS checks;
DROP TABLE IF EXISTS trials;
DROP TABLE IF EXISTS decided;
DROP TABLE IF EXISTS cases;
DROP TABLE IF EXISTS runs;
";

/// The reason why a file cannot be used as an index.
#[derive(Debug, thiserror::Error)]
pub enum IndexOpenError {
    #[error("the index is damaged")]
    Damaged,
    #[error("the index was made by a newer version of this program")]
    Newer,
    #[error("the index cannot be opened: {0}")]
    Other(#[from] rusqlite::Error),
}

impl IndexOpenError {
    pub fn is_busy(&self) -> bool {
        match self {
            IndexOpenError::Other(error) => is_busy(error),
            IndexOpenError::Damaged | IndexOpenError::Newer => false,
        }
    }
}

/// Says whether another process is writing, so that it may work later.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

pub fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Opens the index, and makes it if it is missing or of an older version.
pub fn open(path: &Path, patience: Duration) -> Result<Connection, IndexOpenError> {
    open_current_version(path, patience).map_err(|unusable| match unusable {
        IndexOpenError::Other(error) if is_damage(&error) => IndexOpenError::Damaged,
        other => other,
    })
}

fn open_current_version(path: &Path, patience: Duration) -> Result<Connection, IndexOpenError> {
    let mut db = Connection::open(path)?;
    db.busy_timeout(patience)?;
    let version = version(&db)?;
    if version > VERSION {
        return Err(IndexOpenError::Newer);
    }
    db.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = normal; PRAGMA foreign_keys = on;")?;
    if version < VERSION {
        recreate_tables(&mut db)?;
    }
    Ok(db)
}

pub fn in_memory() -> rusqlite::Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    db.execute_batch("PRAGMA foreign_keys = on;")?;
    recreate_tables(&mut db)?;
    Ok(db)
}

/// Makes empty tables of this version and drops existing ones.
pub fn recreate_tables(db: &mut Connection) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    change.execute_batch(DROP_TABLES)?;
    change.execute_batch(TABLES)?;
    change.pragma_update(None, "user_version", VERSION)?;
    change.commit()
}

/// Deletes the file and the files that SQLite keeps beside it. Errors are ignored: a file that stays is found
/// unusable again and reported then.
pub fn remove(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        let _ = std::fs::remove_file(name);
    }
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    Ok(db.query_row("PRAGMA user_version", [], |row| row.get(0)).optional()?.unwrap_or(0))
}
