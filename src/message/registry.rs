//! The registry: the reasons why a heartbeat or another request fails. Sessions do not raise these reports as errors.
//! Instead, the registrar writes them to the log and to the status.

use flake::IdFormat;
use flake::fleet::RegistryRefusal;
use pgrx::prelude::*;

use crate::message::report::Report;
use crate::pg::libpq::{QueryFailure, Unconnected};
use crate::pg::timestamp;

/// Why a heartbeat failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `snowflake_pg.registry` became empty when the configuration was reloaded.
    NotSet,
    /// `snowflake_pg.registry` is not a connection string.
    Malformed,
    /// No answer was received.
    NoAnswer(QueryFailure),
    /// The registry refused the request.
    Refused { refusal: RegistryRefusal, facts: Box<RefusalFacts>, format: IdFormat },
    /// This version does not recognize the answer with this text, or the answer does not belong to the request.
    Strange { answer: String },
}

/// What a refusal reports in addition to its reason. If the registry did not report a fact, its value is an empty
/// string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalFacts {
    /// When the refusal ends, in microseconds since the Unix epoch.
    pub until: Option<i128>,
    /// The path of this server's witness, or an empty string.
    pub witness: String,
    /// The reason for a quarantine, or the reason why all worker IDs are in use.
    pub why: String,
    /// The layout of the registry's fleet.
    pub layout: String,
    /// The epoch of the registry's fleet, in microseconds since the Unix epoch.
    pub epoch: i128,
}

impl Trouble {
    /// Returns true if both troubles are of the same kind. If successive heartbeats fail for the same reason, only the
    /// first failure is logged.
    pub fn is_like(&self, other: &Trouble) -> bool {
        use std::mem::discriminant;
        match (self, other) {
            (
                Trouble::NoAnswer(QueryFailure::Raised { code: one, .. }),
                Trouble::NoAnswer(QueryFailure::Raised { code: two, .. }),
            ) => one == two,
            // A server that is stopping can answer in several ways.
            (
                Trouble::NoAnswer(QueryFailure::NotConnected { cause: one, .. }),
                Trouble::NoAnswer(QueryFailure::NotConnected { cause: two, .. }),
            ) => one == two,
            (Trouble::NoAnswer(one), Trouble::NoAnswer(two)) => discriminant(one) == discriminant(two),
            (Trouble::Refused { refusal: one, .. }, Trouble::Refused { refusal: two, .. }) => {
                discriminant(one) == discriminant(two)
            }
            _ => discriminant(self) == discriminant(other),
        }
    }

    pub fn report(&self) -> Report {
        match self {
            Trouble::NotSet => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "parameter \"snowflake_pg.registry\" is no longer set",
                "The server was started with a registry.",
                "Set \"snowflake_pg.registry\" again and reload the configuration. To run the server without a registry, set \
                 \"snowflake_pg.worker_id\" and restart it.",
            ),
            Trouble::Malformed => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "the value of parameter \"snowflake_pg.registry\" is not a connection string",
                "The value is not shown, because it might contain a password.",
                "Set a libpq connection string such as \"host=registry.example dbname=fleet\", or a URI, and reload the \
                 configuration. In a URI, percent-encode the special characters of the password: write \"%40\" instead of \"@\", and \
                 \"%2F\" instead of \"/\".",
            ),
            Trouble::NoAnswer(failure) => no_answer(failure),
            Trouble::Refused { refusal, facts, format } => refused(*refusal, facts, *format),
            Trouble::Strange { answer } => Report::of(
                PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
                "unexpected response from the registry",
                format!("The response was: {answer}."),
                "Make sure that snowflake_pg on this server and snowflake_registry on the registry's server have the same \
                 version.",
            ),
        }
    }
}

const READ_ONLY: &str = "The registry's server is read-only: either it is a standby, or its setting \
                         \"default_transaction_read_only\" is on. Specify the primary in \"snowflake_pg.registry\", or \
                         make the server accept writes.";

fn no_answer(failure: &QueryFailure) -> Report {
    match failure {
        QueryFailure::Interrupted => Report::of(
            PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
            "the request to the registry was interrupted",
            "",
            "The server will retry the request.",
        ),
        QueryFailure::NotConnected { text, cause: Unconnected::Login } => Report::of(
            PgSqlErrorCode::ERRCODE_SQLSERVER_REJECTED_ESTABLISHMENT_OF_SQLCONNECTION,
            "the registry's server refused the login",
            sentence(text),
            "Check the user name, password and database in \"snowflake_pg.registry\" or in the password file. Also \
             check pg_hba.conf and the connection limits on the registry's server.",
        ),
        QueryFailure::NotConnected { text, cause } => Report::of(
            PgSqlErrorCode::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
            "cannot connect to the registry",
            sentence(text),
            match cause {
                Unconnected::ReadOnly => READ_ONLY,
                _ => {
                    "Check that the registry's server is running and accepts connections from this server, and that \
                     \"snowflake_pg.registry\" specifies the correct host, port, database and user."
                }
            },
        ),
        QueryFailure::Raised { code, message, detail, hint } => Report::of(
            PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
            format!("the registry raised an error: {message}"),
            format!("{}The SQLSTATE is {code}.", if detail.is_empty() { String::new() } else { format!("{detail} ") }),
            match (code.as_str(), hint.is_empty()) {
                // The schema, the function or the table does not exist.
                ("3F000" | "42883" | "42P01", _) => {
                    "In the database specified by \"snowflake_pg.registry\", run CREATE EXTENSION snowflake_registry \
                     and SELECT snowflake_registry.create_fleet(layout), or correct \"snowflake_pg.registry\"."
                        .into()
                }
                ("42501", _) => "As the owner of the registry, run SELECT snowflake_registry.grant_server(role) for \
                     the role that the servers use to connect."
                    .into(),
                (_, false) => hint.clone(),
                ("25006", true) => READ_ONLY.into(),
                (_, true) => "Check the log of the registry's server.".into(),
            },
        ),
        QueryFailure::Warned { message } => Report::of(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!("the registry answered with a warning: {message}"),
            "The answer might be lost in a failover, so the server does not use it.",
            "Check the synchronous standby of the registry's server.",
        ),
        QueryFailure::Broken { text } => Report::of(
            PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
            "the registry did not answer",
            sentence(text),
            "Check the registry's server and the network between the servers.",
        ),
    }
}

fn refused(refusal: RegistryRefusal, facts: &RefusalFacts, format: IdFormat) -> Report {
    let until = |text: &str| facts.until.map_or(String::new(), |at| format!("{text} {}.", timestamp::utc(at)));
    let mut report = match refusal {
        RegistryRefusal::ForeignFleet => Report::of(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the registry belongs to a different fleet",
            "This server has a worker ID from a different fleet, or has used the registry of a different fleet since \
             it started.",
            "Correct \"snowflake_pg.registry\". To move this server to the registry's fleet, stop it, remove its \
             witness, and start it again.",
        ),
        RegistryRefusal::Layout => Report::of(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the registry's fleet has a different layout or epoch",
            format!(
                "The fleet has layout \"{}\" and epoch {}. This server has layout \"{}\" and epoch {}.",
                facts.layout,
                timestamp::utc(facts.epoch),
                format.layout,
                timestamp::utc(format.instant(0)),
            ),
            "Set \"snowflake_pg.layout\" and \"snowflake_pg.epoch\" to the fleet's values, and restart this server.",
        ),
        RegistryRefusal::Life => Report::of(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "the registry began a new life during the request",
            "",
            "The server will retry the request.",
        ),
        RegistryRefusal::Floor { .. } => Report::of(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the fleet does not grant IDs yet",
            format!(
                "{} The layout of the fleet was changed, or create_fleet() was called with \"not_before\".",
                until("The first IDs will be granted at")
            )
            .trim(),
            "Wait until then. If this takes longer than a day, check the clock of the registry's server.",
        ),
        RegistryRefusal::Quarantine { .. } => Report::of(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the registry is in quarantine, and no spare worker ID is free",
            [until("Worker IDs will be assigned again at"), because(&facts.why)].join(" ").trim(),
            "Start a server that still has its witness and make it the primary, or wait. If you are certain that the \
             registry has not lost any changes since the quarantine began, run SELECT snowflake_registry.open() as its \
             owner.",
        ),
        RegistryRefusal::Clock { .. } => Report::of(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "this server's clock is behind the registry's clock",
            [until("A worker ID is available only to servers whose clock is past"), because(&facts.why)]
                .join(" ")
                .trim(),
            "Correct this server's clock. If it is already correct, check the clock of the registry's server.",
        ),
        RegistryRefusal::Implausible => Report::of(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the registry cannot have issued the grant that this server holds",
            "The start of the grant, its end, or the number of its renewals is too high.",
            "Check the clock of the registry's server, and find out whether it was set back. This server continues to \
             issue IDs until its grant ends.",
        ),
        RegistryRefusal::Full => Report::of(
            PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "all worker IDs of the fleet are in use",
            [until("The next worker ID will become free at"), because(&facts.why)].join(" ").trim(),
            "Check view snowflake_registry.servers for servers that are gone, and check this server's clock. A fleet \
             with more servers needs a layout with a wider worker field.",
        ),
        RegistryRefusal::Range => Report::of(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "this server's datacenter ID does not fit the fleet's layout",
            "",
            "Correct \"snowflake_pg.datacenter_id\" and restart this server.",
        ),
        RegistryRefusal::Lease => Report::of(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the registry does not accept the lease",
            "",
            "Set \"snowflake_pg.lease\" to a time from 10 minutes to 1 day, and restart this server.",
        ),
    };
    if refusal == RegistryRefusal::ForeignFleet && !facts.witness.is_empty() {
        report.hint = report.hint.replace("its witness", &format!("file \"{}\"", facts.witness));
    }
    report
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { sentence(&format!("The reason is: {why}")) }
}

/// Returns a text from libpq or the registry as a sentence, with a period.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '?', '!']) { text.into() } else { format!("{text}.") }
}
