//! The connection to the NATS server, and what is set up there.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::{CreateKeyValueErrorKind, GetStreamErrorKind};
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, kv, object_store, stream};
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;
use practicum_core::tree::{read_regular, read_regular_text};
use practicum_engine::store::RecordKey;
use tokio::sync::watch;

use crate::WorkersError;
use crate::messages::{
    AGENT_METADATA, BUNDLES, LABELS_METADATA, LabelSet, PAUSES, TRIALS_STREAM, TRIALS_SUBJECT, run_bucket,
};

/// The time after which the server forgets what nobody fetched.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The time within which the server recognises a message that is sent twice.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(600);
/// How long one request to the server may take. A request that a server got just before it ended is not answered, and is
/// repeated after this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which somebody is told that a request is repeated in vain.
const FIRST_NOTICE: Duration = Duration::from_secs(3);
/// The time after which it is told again.
const NEXT_NOTICE: Duration = Duration::from_secs(60);

/// The variable with a file of NATS credentials: a `.creds` file, or the seed of an nkey.
const CREDENTIALS_VARIABLE: &str = "PRACTICUM_NATS_CREDS";
/// The variable with a file of certificates that the server's certificate is signed by.
const CA_VARIABLE: &str = "PRACTICUM_NATS_CA";

/// The address of a NATS server, and how to log in there.
#[derive(Debug, Clone)]
pub struct NatsAccess {
    url: String,
    credentials: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl NatsAccess {
    /// Gives the access to a server with the login that the environment names: `PRACTICUM_NATS_CREDS` is a file of
    /// credentials or the seed of an nkey, `PRACTICUM_NATS_CA` a file of certificates. A user and a password may be in
    /// the address.
    pub fn new(url: &str, environment: &BTreeMap<String, String>) -> Self {
        let file = |name: &str| environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { url: url.to_owned(), credentials: file(CREDENTIALS_VARIABLE), ca: file(CA_VARIABLE) }
    }

    /// Connects, and refuses a server that is too old or has no storage.
    pub(crate) async fn connect(&self, name: &str) -> Result<NatsServer, WorkersError> {
        let refused = |why: String| WorkersError::Server(format!("{}: {why}", self.shown_url()));
        let (connected, connections) = watch::channel(0_u64);
        let connected = Arc::new(connected);
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(Duration::from_secs(10))
            .request_timeout(Some(REQUEST_TIMEOUT))
            .reconnect_delay_callback(|tries| Duration::from_millis(100 * (tries as u64).clamp(1, 20)))
            .event_callback(move |event| {
                let connected = Arc::clone(&connected);
                async move {
                    if matches!(event, Event::Connected) {
                        connected.send_modify(|count| *count += 1);
                    }
                }
            });
        // The library leaves a login in the address alone.
        let address: ServerAddr = self.url.parse().map_err(|error| refused(format!("{error}")))?;
        if let Some(user) = address.username() {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            options =
                options.user_and_password(decoded(user), decoded(address.password().unwrap_or_default()));
        }
        if let Some(path) = &self.credentials {
            let told = |error: &dyn std::fmt::Display| refused(format!("{}: {error}", path.display()));
            let text = read_regular_text(path).map_err(|error| told(&error))?;
            options = match text.trim() {
                seed if seed.starts_with("SU") => options.nkey(seed.to_owned()),
                whole => options.credentials(whole).map_err(|error| told(&error))?,
            };
        }
        if let Some(path) = &self.ca {
            // An unreadable file would otherwise be reported as a failed handshake.
            read_regular(path).map_err(|error| refused(format!("{}: {error}", path.display())))?;
            options = options.add_root_certificates(path.clone());
        }
        let client =
            options.connect(address).await.map_err(|error| refused(format!("no connection: {error}")))?;
        let version = client.server_info().version;
        if !client.is_server_compatible(2, 10, 0) {
            return Err(refused(format!(
                "the NATS server has version {version}, and workers need 2.10 or newer"
            )));
        }
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(REQUEST_TIMEOUT);
        jetstream.query_account().await.map_err(|error| {
            refused(format!(
                "the NATS server keeps no messages; start it with JetStream (nats-server -js): {error}"
            ))
        })?;
        Ok(NatsServer { client, jetstream, connections })
    }

    /// Gives the address without a password.
    pub fn shown_url(&self) -> String {
        match (self.url.split_once("://"), self.url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
            (_, None) => self.url.clone(),
        }
    }
}

/// A connection to a server.
#[derive(Clone)]
pub struct NatsServer {
    pub client: Client,
    pub jetstream: jetstream::Context,
    /// Counts how often the connection was made. Who watches something begins again when the number changes.
    pub connections: watch::Receiver<u64>,
}

impl NatsServer {
    /// Gives the stream of trials, which is made if it does not exist.
    pub async fn trials(&self) -> Result<Stream, WorkersError> {
        let config = stream::Config {
            name: TRIALS_STREAM.to_owned(),
            subjects: vec![format!("{TRIALS_SUBJECT}.>")],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            max_age: KEPT,
            duplicate_window: DUPLICATE_WINDOW,
            ..stream::Config::default()
        };
        let stream = self.jetstream.get_or_create_stream(config).await;
        stream.map_err(WorkersError::request("make the stream of trials"))
    }

    /// Makes the consumer of a label set. The trials of all label sets are disjoint.
    pub async fn make_consumer(
        &self,
        trials: &Stream,
        set: &LabelSet,
        key: &RecordKey,
        lease: Duration,
    ) -> Result<(), WorkersError> {
        let metadata = [(AGENT_METADATA, set.agent.clone()), (LABELS_METADATA, set.labels_text())];
        let config = pull::Config {
            durable_name: Some(set.consumer(key)),
            filter_subject: set.subject(key, "*"),
            ack_policy: AckPolicy::Explicit,
            ack_wait: lease,
            // More trials than any number of workers runs at once.
            max_ack_pending: 100_000,
            metadata: metadata
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect::<HashMap<_, _>>(),
            ..pull::Config::default()
        };
        let made: Result<Consumer<pull::Config>, _> = trials.create_consumer(config).await;
        made.map(drop).map_err(WorkersError::request("make a consumer of trials"))
    }

    /// Gives an object store, which is made if it does not exist.
    pub async fn object_store(&self, name: &str) -> Result<ObjectStore, WorkersError> {
        let config = object_store::Config {
            bucket: name.to_owned(),
            max_age: KEPT,
            storage: StorageType::File,
            ..object_store::Config::default()
        };
        match self.jetstream.create_object_store(config).await {
            Ok(store) => Ok(store),
            // Another process made it, perhaps with another age.
            Err(_) => {
                let store = self.jetstream.get_object_store(name).await;
                store.map_err(WorkersError::request("make a store of files"))
            }
        }
    }

    /// Gives the store of the files of runs, which is made if it does not exist.
    pub async fn bundles(&self) -> Result<ObjectStore, WorkersError> {
        self.object_store(BUNDLES).await
    }

    /// Gives the bucket of pauses, which is made if it does not exist.
    pub async fn pauses(&self) -> Result<kv::Store, WorkersError> {
        self.make_bucket(PAUSES).await.map(|(store, _)| store)
    }

    /// Makes a key-value bucket. Gives also whether it existed before.
    pub async fn make_bucket(&self, name: &str) -> Result<(kv::Store, bool), WorkersError> {
        const MAKE: &str = "make a bucket";
        if let Ok(store) = self.jetstream.get_key_value(name).await {
            return Ok((store, true));
        }
        let config = kv::Config {
            bucket: name.to_owned(),
            history: 1,
            max_age: KEPT,
            storage: StorageType::File,
            ..kv::Config::default()
        };
        match self.jetstream.create_key_value(config).await {
            Ok(store) => Ok((store, false)),
            Err(error) if error.kind() == CreateKeyValueErrorKind::BucketCreate => self
                .jetstream
                .get_key_value(name)
                .await
                .map(|store| (store, true))
                .map_err(WorkersError::request(MAKE)),
            Err(error) => Err(WorkersError::request(MAKE)(error)),
        }
    }

    /// Gives the bucket of a run; `None` if the run is over and everything about it was removed.
    pub async fn run_bucket(&self, run: &str) -> Result<Option<kv::Store>, WorkersError> {
        let bucket = run_bucket(run);
        match self.jetstream.get_stream(format!("KV_{bucket}")).await {
            Err(error) if is_missing_stream(error.kind()) => return Ok(None),
            Err(error) => return Err(WorkersError::request("look up a run")(error)),
            Ok(_) => {}
        }
        let store = self.jetstream.get_key_value(bucket).await;
        store.map(Some).map_err(WorkersError::request("look up a run"))
    }
}

fn is_missing_stream(kind: GetStreamErrorKind) -> bool {
    match kind {
        GetStreamErrorKind::JetStream(error) => error.error_code() == jetstream::ErrorCode::STREAM_NOT_FOUND,
        _ => false,
    }
}

/// Repeats a request until it succeeds, because the server may be restarting or full. Gives up after some time, and tells
/// meanwhile what fails. A file that is damaged is not fetched again.
pub async fn with_retries<T, F: Future<Output = Result<T, WorkersError>>>(
    patience: Duration,
    tell: impl Fn(&WorkersError),
    mut request: impl FnMut() -> F,
) -> Result<T, WorkersError> {
    let begun = Instant::now();
    let mut told: Option<Instant> = None;
    loop {
        match request().await {
            Err(WorkersError::Damaged(why)) => return Err(WorkersError::Damaged(why)),
            Err(error) if begun.elapsed() < patience => {
                let is_due = told.map_or(begun.elapsed() > FIRST_NOTICE, |at| at.elapsed() > NEXT_NOTICE);
                if is_due {
                    told = Some(Instant::now());
                    tell(&error);
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            result => return result,
        }
    }
}
