//! Files at the server: fetching them within limits, and keeping the files of runs for the next run.

use std::fs::File;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::object_store::{GetErrorKind, ObjectInfo, ObjectStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::WorkersError;
use crate::archive::{LARGEST_ARCHIVE, PackedArchive, digest_of_file};
use crate::server::NatsServer;

/// How long a connected server may send nothing of a file.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// The age in seconds after which the files of a run are stored again, so that they stay for as long as a run takes.
const RENEWED_AFTER: i64 = 24 * 3600;

/// Fetches a file, and gives it only if it has this digest.
pub async fn fetch_object(
    server: &NatsServer,
    objects: &ObjectStore,
    name: &str,
    digest: &str,
) -> Result<File, WorkersError> {
    const FETCH: &str = "fetch a file";
    let object = match objects.get(name).await {
        Err(error) if error.kind() == GetErrorKind::NotFound => return Err(damaged("is missing")),
        got => got.map_err(WorkersError::request(FETCH))?,
    };
    // Whoever may write to the server could store a file without end.
    let mut from = object.take(LARGEST_ARCHIVE);
    let mut to = tokio::fs::File::from_std(tempfile::tempfile().map_err(told)?);
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let read = match tokio::time::timeout(LONGEST_SILENCE, from.read(&mut buffer)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(length)) => length,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(damaged("was changed on the way to the server"));
            }
            Ok(Err(error)) => return Err(WorkersError::request(FETCH)(error)),
            Err(_) if server.client.connection_state() == State::Connected => {
                return Err(damaged("is not complete"));
            }
            Err(silent) => return Err(WorkersError::request(FETCH)(silent)),
        };
        to.write_all(&buffer[..read]).await.map_err(told)?;
    }
    to.flush().await.map_err(told)?;
    let (mut file, digest) = (to.into_std().await, digest.to_owned());
    let compared =
        tokio::task::spawn_blocking(move || digest_of_file(&mut file).map(|found| (found == digest, file)));
    match compared.await.map_err(|error| WorkersError::Bundle(error.to_string()))?.map_err(told)? {
        (true, file) => Ok(file),
        (false, _) => Err(damaged("has another digest than it should have")),
    }
}

/// Stores the files of a run under their digest. Files that an earlier run stored are not stored again.
pub async fn store_bundle(bundles: &ObjectStore, packed: &PackedArchive) -> Result<(), WorkersError> {
    let file = packed.file.reopen().map_err(told)?;
    let size = file.metadata().map_err(told)?.len();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or_default();
    let is_stored = |info: ObjectInfo| {
        let modified = info.modified.map_or(0, |at| at.unix_timestamp());
        !info.deleted && info.size as u64 == size && now.saturating_sub(modified) < RENEWED_AFTER
    };
    if bundles.info(&packed.digest).await.is_ok_and(is_stored) {
        return Ok(());
    }
    let stored = bundles.put(packed.digest.as_str(), &mut tokio::fs::File::from_std(file)).await;
    stored.map(drop).map_err(WorkersError::request("store the files of the run"))
}

fn damaged(what: &'static str) -> WorkersError {
    WorkersError::Damaged(what)
}

fn told(error: std::io::Error) -> WorkersError {
    WorkersError::Bundle(error.to_string())
}
