//! The connection over which the registrar requests blocks. It stays open for some seconds, because a tag in high
//! demand needs several blocks in a row.

use std::time::{Duration, Instant};

use flake::IdFormat;
use flake::fleet::Uuid;

use crate::message::registry::Trouble;
use crate::pg::conninfo::ConnectionString;
use crate::pg::libpq::{Connection, QueryFailure};
use crate::segments::client::SegmentClient;

/// How long a connection stays open after the last request.
const IDLE: Duration = Duration::from_secs(5);

/// How long the registry has to answer one request. The limit is the time until the next heartbeat, restricted to this
/// range.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// The data that the registrar needs to send requests.
pub struct RequestContext<'text> {
    pub string: &'text str,
    pub fleet: Uuid,
    pub format: IdFormat,
    /// The time until the next heartbeat.
    pub time: Duration,
}

impl RequestContext<'_> {
    /// Returns how long the registry has to answer one request.
    fn patience(&self) -> Duration {
        self.time.clamp(PATIENCE.0, PATIENCE.1)
    }

    /// Returns a client that uses the given connection.
    pub fn client<'connection>(&self, connection: &'connection Connection) -> SegmentClient<'connection> {
        SegmentClient { connection, patience: self.patience(), fleet: self.fleet, format: self.format }
    }
}

/// The registrar's connection to the registry, if it is open.
#[derive(Default)]
pub struct RegistryConnection {
    connection: Option<Connection>,
    string: String,
    last_use: Option<Instant>,
}

impl RegistryConnection {
    /// Closes the connection if it has been idle for too long or leads to a different registry. Otherwise, returns the
    /// time until it will have been idle for too long.
    pub fn close_if_idle(&mut self, context: &RequestContext, now: Instant) -> Option<Duration> {
        if self.string != context.string || self.last_use.is_some_and(|last| now >= last + IDLE) {
            self.close();
        }
        self.last_use.map(|last| (last + IDLE).saturating_duration_since(now))
    }

    /// Sends requests over the open connection, or over a new one. If the open connection is broken, retries once over
    /// a new one.
    pub fn request<T>(
        &mut self,
        context: &RequestContext,
        mut request: impl FnMut(&SegmentClient) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        loop {
            let fresh = self.connection.is_none();
            if fresh {
                self.connection = Some(connect(context)?);
                self.string = context.string.to_owned();
            }
            let answered = request(&context.client(self.connection.as_ref().expect("it was opened")));
            self.last_use = Some(Instant::now());
            match answered {
                Err(Trouble::NoAnswer(QueryFailure::Raised { .. })) | Ok(_) => return answered,
                Err(Trouble::NoAnswer(QueryFailure::Broken { .. })) if !fresh => self.close(),
                Err(_) => {
                    self.close();
                    return answered;
                }
            }
        }
    }

    fn close(&mut self) {
        (self.connection, self.last_use) = (None, None);
    }
}

fn connect(context: &RequestContext) -> Result<Connection, Trouble> {
    if context.string.is_empty() {
        return Err(Trouble::NotSet);
    }
    let mut string = ConnectionString::parse(context.string).ok_or(Trouble::Malformed)?;
    string.timeout = string.timeout.min(context.patience());
    Connection::open(&string, || {}).map_err(Trouble::NoAnswer)
}
