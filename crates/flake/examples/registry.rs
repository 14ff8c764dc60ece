//! An application that issues IDs itself, with a worker ID that the registry of the fleet has given to it. No server and no other
//! instance of the application issues the same IDs.
//!
//! ```sh
//! cargo run -p flake --example registry -- 'host=localhost user=postgres dbname=postgres' 41:10:12 5
//! ```
//!
//! The arguments are the connection string of the registry, the layout of the fleet, and the number of IDs that each of two threads
//! issues. Each line of the output is an ID.
//!
//! An application of your own needs [`Ids`], [`Holder`], [`Unrecoverable`], the constants, and the module `clock`. `main` and `run` are
//! only for the demonstration.

mod clock;

use std::error::Error;
use std::fmt;
use std::process;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use clock::Clock;
use flake::fleet::{Effect, Member, MemberIdentity, MemberStanding, Point, RegistryRefusal, Scale};
use flake::{ClockRules, IdFormat, Issuer, Obstacle, OnRegression};
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Config, NoTls};

/// How far ahead of the clock the application may issue IDs without the registry. An instance that has ended keeps its worker ID for
/// this time and 10 minutes more.
const LEASE: Duration = Duration::from_hours(1);

/// How often the grant is renewed. The view `snowflake_registry.servers` shows a holder as late if it expects five more renewals in
/// the time since the last one, at this rate.
const HEARTBEAT: Duration = Duration::from_secs(LEASE.as_secs().div_ceil(720));

/// How often the IDs are compared with the wall clock.
const DISCIPLINE: Duration = Duration::from_secs(1);

/// How long a new connection can take, and how long the kernel waits for a registry that does not acknowledge a request. Without it, the
/// application would not notice for minutes that the registry's host is gone.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long the application waits between two attempts while it has no worker ID.
const RETRY: Duration = Duration::from_secs(1);

/// How the IDs follow the clock: the rules of a server with the default settings.
const RULES: ClockRules =
    ClockRules { slack: 100_000_000, max_jump: 3_600_000_000_000, on_regression: OnRegression::Continue };

/// The largest number of calls in one heartbeat: a renewal that finds the grant lost, and a new claim that finds a new life.
const CALLS: usize = 8;

/// What the registry shows about this instance.
const ABOUT: &str = r#"{"host": "shop", "role": "application"}"#;

type AnyError = Box<dyn Error + Send + Sync>;

/// An error that occurs again until somebody changes the configuration of the application or of the registry.
#[derive(Debug)]
struct Unrecoverable(String);

impl fmt::Display for Unrecoverable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unrecoverable {}

fn main() -> process::ExitCode {
    match run() {
        Ok(()) => process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [registry, layout, count] = arguments.as_slice() else {
        return Err("usage: registry CONNECTION_STRING LAYOUT COUNT".into());
    };
    let format = IdFormat::parse(layout)?;
    let count: usize = count.parse()?;
    let ids = Ids::start(registry.parse()?, format)?;
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let ids = Arc::clone(&ids);
            thread::spawn(move || (0..count).map(|_| ids.next_id()).collect::<Result<Vec<_>, _>>())
        })
        .collect();
    for thread in threads {
        for id in thread.join().map_err(|_| "a thread has panicked")?? {
            println!("{id}");
        }
    }
    Ok(())
}

/// The IDs of this instance. `None` while the instance has no worker ID.
pub struct Ids {
    clock: Clock,
    issuer: RwLock<Option<Issuer>>,
}

impl Ids {
    /// Waits for a worker ID, and starts the threads that renew the grant and follow the clock.
    ///
    /// # Errors
    ///
    /// Fails if waiting does not help: see [`Unrecoverable`].
    pub fn start(mut registry: Config, format: IdFormat) -> Result<Arc<Ids>, AnyError> {
        registry.connect_timeout(PATIENCE).tcp_user_timeout(PATIENCE).keepalives_idle(PATIENCE);
        let identity = MemberIdentity { fleet: None, format, datacenter: 0 };
        let member = Member::start(identity, None, Point::ZERO);
        let ids = Arc::new(Ids { clock: Clock::start(), issuer: RwLock::new(None) });
        let mut holder = Holder { registry, identity, member, ids: Arc::clone(&ids), reported: String::new() };
        while let Err(failure) = holder.heartbeat() {
            if failure.is::<Unrecoverable>() {
                return Err(failure);
            }
            holder.report(&failure.to_string());
            thread::sleep(RETRY);
        }
        holder.report("");
        thread::spawn(move || {
            loop {
                thread::sleep(if holder.ids.has_issuer() { HEARTBEAT } else { RETRY });
                let result = holder.heartbeat();
                holder.report(&result.err().map(|failure| failure.to_string()).unwrap_or_default());
                if let MemberStanding::Fenced { .. } = holder.member.standing() {
                    eprintln!("a copy of this process has its worker ID");
                    process::exit(1);
                }
            }
        });
        let follower = Arc::clone(&ids);
        thread::spawn(move || {
            loop {
                thread::sleep(DISCIPLINE);
                follower.follow_clock();
            }
        });
        Ok(ids)
    }

    fn has_issuer(&self) -> bool {
        self.issuer.read().is_ok_and(|issuer| issuer.is_some())
    }

    /// Keeps the IDs close to the wall clock.
    fn follow_clock(&self) {
        if let Ok(Some(issuer)) = self.issuer.read().as_deref() {
            issuer.discipline(|| self.clock.read(), &RULES);
        }
    }

    /// Returns the next ID, and waits if the IDs of the next 100 ms are used up.
    ///
    /// # Errors
    ///
    /// Fails while the application has no worker ID, and after the bound of the grant.
    pub fn next_id(&self) -> Result<i64, AnyError> {
        loop {
            match self.issue()? {
                Ok(id) => return Ok(id),
                Err(Obstacle::Throttled(pause)) => thread::sleep(pause),
                Err(Obstacle::NotReserved(_)) => return Err("the grant has ended: is the registry reachable?".into()),
                Err(obstacle) => return Err(obstacle.into()),
            }
        }
    }

    /// Does not wait. The lock ends with this function, so that it is not held during a wait.
    fn issue(&self) -> Result<Result<i64, Obstacle>, AnyError> {
        let issuer = self.issuer.read().map_err(|_| "the heartbeat has panicked")?;
        Ok(issuer.as_ref().ok_or("no worker ID")?.next_id(|| self.clock.monotonic()))
    }
}

/// The side of the registry.
struct Holder {
    registry: Config,
    identity: MemberIdentity,
    member: Member,
    ids: Arc<Ids>,
    /// The error that was printed last, or an empty string after a heartbeat that succeeded.
    reported: String,
}

impl Holder {
    /// Claims a worker ID or renews the grant, over a connection of its own, so that it finds the new primary after a failover.
    fn heartbeat(&mut self) -> Result<(), AnyError> {
        let mut client =
            self.registry.connect(NoTls).map_err(|error| failure("cannot connect to the registry", &error))?;
        let scale = Scale::new(self.identity.format);
        for _ in 0..CALLS {
            let wall = i64::try_from(self.ids.clock.read().wall / 1_000)?;
            let Some(call) = self.member.request(scale.point(wall), LEASE) else { break };
            let statement = call.statement(ABOUT);
            let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
                statement.parameters.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect();
            let row = client
                .query_typed_one(&statement.sql, &parameters)
                .map_err(|error| failure("the registry did not answer", &error))?;
            let answer = call.answer(|column| row.get(column)).ok_or("this is not a registry")?;
            match self.member.answer(&call, &answer) {
                Effect::Continue | Effect::Refused(RegistryRefusal::Life) => {}
                Effect::Assigned | Effect::Renewed => return self.take_grant(),
                Effect::Lost(_) => self.stop()?,
                Effect::Fenced => return self.stop(),
                Effect::Refused(refusal) => return Err(refused(refusal)),
                Effect::Ignored => return Err(format!("{answer:?} is not an answer to {call:?}").into()),
            }
        }
        Err("the registry has not assigned a worker ID".into())
    }

    /// Prints an error once, even if it occurs in each heartbeat. The text is empty if there was no error.
    fn report(&mut self, text: &str) {
        if text != self.reported {
            if !text.is_empty() {
                eprintln!("{text}");
            }
            self.reported = text.to_owned();
        }
    }

    /// Issues IDs up to the bound of the grant.
    fn take_grant(&self) -> Result<(), AnyError> {
        let (MemberStanding::Holding(grant), clock) = (self.member.standing(), self.ids.clock) else { return Ok(()) };
        let mut issuer = self.ids.issuer.write().map_err(|_| "a thread has panicked")?;
        match &*issuer {
            Some(issuer) if issuer.raise(&grant) => {}
            _ => *issuer = Some(Issuer::of_grant(&self.identity, &grant, clock.read())?.with_random_start()),
        }
        Ok(())
    }

    /// Issues no more IDs, until there is another grant.
    fn stop(&self) -> Result<(), AnyError> {
        *self.ids.issuer.write().map_err(|_| "a thread has panicked")? = None;
        Ok(())
    }
}

/// Returns what the registry's server says about a request that it has refused. Otherwise, returns what has failed and why.
fn failure(failed: &str, error: &postgres::Error) -> AnyError {
    let Some(said) = error.as_db_error() else {
        let (mut text, mut source) = (format!("{failed}: {error}"), error.source());
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        return text.into();
    };
    let hint = said.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
    let text = format!("the registry refused the request: {}{hint}", said.message());
    if [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_PASSWORD].contains(said.code()) {
        return Unrecoverable(text).into();
    }
    text.into()
}

/// Returns the error for a refusal. A quarantine ends, and worker IDs become free.
fn refused(refusal: RegistryRefusal) -> AnyError {
    let text = format!("the registry refused the request: {refusal}");
    match refusal {
        RegistryRefusal::Quarantine { .. }
        | RegistryRefusal::Floor { .. }
        | RegistryRefusal::Clock { .. }
        | RegistryRefusal::Full
        | RegistryRefusal::Life
        | RegistryRefusal::Implausible => text.into(),
        RegistryRefusal::ForeignFleet | RegistryRefusal::Layout | RegistryRefusal::Range | RegistryRefusal::Lease => {
            Unrecoverable(text).into()
        }
    }
}
