//! A registry that is upgraded, with what its owner does afterwards, and with servers of both versions for more than a day.

use cluster::{Answer as _, Client, Cluster, Host, Stop, assert_caught, ensure, output, page, texts, typed, within};
use flake::fleet::{Call, Effect, Member, MemberStanding, RegistryAnswer, RegistryRefusal, RegistryRequest};

use crate::calls::{self, LAYOUT, beat, check_quarantine, claim, member, restore};
use crate::granted::GrantedRanges;
use crate::install::{OBJECTS, run};
use crate::lost::number;
use crate::upgraded::{BEFORE, before, upgrade_script};

/// The lowest spare worker ID.
const SPARE: u32 = 768;

/// Makes the objects of the schema an extension, as a clone of the repository created it.
const AS_EXTENSION: &str = "
    INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion, extconfig, extcondition)
        SELECT pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'snowflake_registry', 'owner'::regrole,
            'snowflake_registry'::regnamespace, false, '0.2.0', array_agg(oid), array_agg(''::text)
        FROM pg_class WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind = 'r';
    DO $$
    DECLARE
        member text;
    BEGIN
        FOR member IN
            SELECT format('%s %s', CASE relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'TYPE' END, oid::regclass)
            FROM pg_class WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind IN ('r', 'v', 'c')
            UNION ALL
            SELECT format('FUNCTION %s', oid::regprocedure)
            FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace
        LOOP
            EXECUTE 'ALTER EXTENSION snowflake_registry ADD ' || member;
        END LOOP;
    END
    $$";

/// The objects that belong to the extension.
const MEMBERS: &str = "
    SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
    WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_registry') ORDER BY 1";

/// The page names the two statements.
#[test]
fn an_extension_of_a_clone_is_upgraded_as_the_page_says() {
    let statements = [
        "UPDATE pg_extension SET extversion = '0.2.0-dev' WHERE extname = 'snowflake_registry'",
        "ALTER EXTENSION snowflake_registry UPDATE",
    ];
    let text = page("docs/upgrading.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(statements.iter().all(|statement| text.contains(&format!("`{statement}`"))), "{statements:?}");

    let server = Cluster::builder("upgraded_extension").unset("shared_preload_libraries").start();
    let mut superuser = server.connect();
    for sql in
        ["CREATE ROLE owner LOGIN", "GRANT CREATE ON DATABASE postgres TO owner", "CREATE DATABASE fresh OWNER owner"]
    {
        superuser.batch_execute(sql).expect("a superuser may");
    }
    let mut psql = server.psql();
    psql.arg("-1").env("PGUSER", "owner");
    typed(psql, BEFORE).expect("the script runs");
    let mut owner = server.connect_as("owner");
    owner.one::<String>("SELECT snowflake_registry.create_fleet('41:10:12')::text");
    assert_eq!(claim(&mut owner, LAYOUT), Ok(0));
    superuser.batch_execute(AS_EXTENSION).expect("a superuser may");

    superuser.batch_execute(statements[0]).expect("a superuser may");
    owner.batch_execute(statements[1]).expect("the owner may");
    let version: String = owner.one("SELECT extversion FROM pg_extension WHERE extname = 'snowflake_registry'");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let mut fresh = server.config("fresh").user("owner").connect(postgres::NoTls).expect("the owner may connect");
    fresh.batch_execute("CREATE EXTENSION snowflake_registry").expect("the owner may");
    for query in [OBJECTS, MEMBERS] {
        assert_eq!(owner.all::<String>(query), fresh.all::<String>(query));
    }
    assert_eq!(claim(&mut owner, LAYOUT), Ok(1));
    // The rows are in a dump.
    let dump = output(server.program("pg_dump").args(["--data-only", "--extension=snowflake_registry"]));
    assert!(dump.contains("COPY snowflake_registry.node"), "{dump}");
    owner.batch_execute("DROP EXTENSION snowflake_registry").expect("the owner may");
}

/// A dump of the version before is restored in another database, and the registry there is upgraded.
#[test]
fn a_dump_of_the_version_before_is_restored_and_upgraded() {
    let server = before(Cluster::builder("upgraded_dump"), LAYOUT);
    let mut client = server.connect();
    for worker in 0..2 {
        assert_eq!(claim(&mut client, LAYOUT), Ok(worker));
    }
    let dump = output(&mut server.program("pg_dump"));
    client.batch_execute("CREATE DATABASE fleet").expect("a superuser may");
    restore(&server, "fleet", &dump);
    run(&server, "fleet", &upgrade_script()).expect("the upgrade runs");
    let mut restored = server.connect_to("fleet");
    check_quarantine(&mut restored, LAYOUT).unwrap();
    let status = "SELECT concat_ws(' ', life, life_reason) FROM snowflake_registry.status";
    assert_eq!(restored.one::<String>(status), "2 the registry is in a different cluster or database than before");
    // The owner knows that nothing was lost.
    assert!(restored.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(claim(&mut restored, LAYOUT), Ok(2));
}

/// An old dump of the rows of the version before is restored into a registry of the present version. A server whose claim is not in the
/// dump still has a worker ID that was in the ring, and is a common spare one now. `spoil` changes the registry before.
fn check_old_rows(name: &str, spoil: &str) -> Result<(), String> {
    const SMALL: &str = "41:3:12";
    let server = before(Cluster::builder(name).clock("+0"), SMALL);
    let mut client = server.connect();
    for worker in 0..6 {
        assert_eq!(claim(&mut client, SMALL), Ok(worker));
    }
    let mut dump = server.program("pg_dump");
    let dump = output(dump.args(["--data-only", "--schema=snowflake_registry"]));
    let lost = claim(&mut client, SMALL).expect("a worker ID");

    client.batch_execute("CREATE DATABASE fleet").expect("a superuser may");
    let mut restored = server.connect_to("fleet");
    restored.batch_execute("CREATE EXTENSION snowflake_registry").expect("it is installed");
    restored.batch_execute(spoil).expect("a superuser may");
    restore(&server, "fleet", &dump);
    for hours in [0, 2, 24] {
        server.set_clock(&format!("+{}", hours * 3_600));
        check_quarantine(&mut restored, SMALL).map_err(|reason| format!("{reason}, and {lost} was lost"))?;
    }
    // By then, every lost grant has ended.
    server.set_clock("+90000");
    ensure!(claim(&mut restored, SMALL).is_ok(), "the quarantine does not end");
    Ok(())
}

#[test]
fn restored_rows_of_the_version_before_wait_for_the_longest_lease() {
    check_old_rows("old_rows", "").unwrap();
}

#[test]
fn restored_rows_that_wait_for_a_spare_lease_are_caught() {
    let spoil = "ALTER TABLE snowflake_registry.fleet ALTER spare_until SET DEFAULT 0";
    assert_caught(check_old_rows("old_rows_near", spoil), "worker ID 6 was assigned, and 6 was lost");
}

/// Makes a registry begin a new timeline. It loses nothing.
fn begin_timeline(registry: &mut Cluster) {
    registry.stop(Stop::Fast);
    Host::get().write(&registry.dir().join("standby.signal"), "");
    registry.start();
    registry.promote();
}

#[test]
fn a_quarantine_is_ended_after_an_upgrade() {
    let mut registry = before(Cluster::builder("upgraded_open"), LAYOUT);
    assert_eq!(claim(&mut registry.connect(), LAYOUT), Ok(0));
    run(&registry, "postgres", &upgrade_script()).expect("the upgrade runs");
    // The upgrade itself begins none.
    assert!(!registry.connect().one::<bool>("SELECT snowflake_registry.open()"));
    begin_timeline(&mut registry);
    let mut client = registry.connect();
    let spare = claim(&mut client, LAYOUT);
    assert!(spare.map_or(true, |worker| worker >= SPARE), "{spare:?}");
    assert!(client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(claim(&mut client, LAYOUT), Ok(1));
}

#[test]
fn the_layout_is_changed_after_an_upgrade() {
    let registry = before(Cluster::builder("upgraded_layout").clock("+0"), LAYOUT);
    let mut client = registry.connect();
    assert_eq!(claim(&mut client, LAYOUT), Ok(0));
    run(&registry, "postgres", &upgrade_script()).expect("the upgrade runs");
    let wait = "SELECT extract(epoch FROM snowflake_registry.change_layout('41:12:10') - clock_timestamp())::float8";
    let wait: f64 = client.one(wait);
    let refused = claim(&mut client, "41:12:10").expect_err("the grants of the old layout have not ended");
    assert!(matches!(refused, RegistryRefusal::Floor { .. }), "{refused:?}");
    registry.set_clock(&format!("+{}", wait.ceil() + 1.0));
    assert_eq!(claim(&mut client, "41:12:10"), Ok(0));
    assert_eq!(claim(&mut client, LAYOUT), Err(RegistryRefusal::Layout));
}

/// The statements of a server of the version before.
const STATEMENTS: &str = include_str!("statements--0.2.0-dev.sql");

/// A server of the fleet.
struct MixedServer {
    name: &'static str,
    member: Member,
    /// True for a server of the version before. It sends other statements, and does not know that it can leave.
    before: bool,
}

impl MixedServer {
    fn start(name: &'static str, before: bool) -> MixedServer {
        MixedServer { name, member: member(LAYOUT), before }
    }

    fn send(client: &mut Client, call: &Call, before: bool) -> RegistryAnswer {
        if !before {
            return calls::send(client, call).expect("the registry answers").0;
        }
        let function = match call.request {
            RegistryRequest::Hello { .. } => "snowflake_registry.hello(",
            RegistryRequest::Claim(_) => "snowflake_registry.claim(",
            RegistryRequest::Renew(_) => "snowflake_registry.renew(",
        };
        let statement = STATEMENTS.split(';').find(|statement| statement.contains(function)).expect("it is recorded");
        let parameters = call.statement("{}").parameters;
        let row = client.query_typed_one(statement, &texts(&parameters)).expect("the registry answers");
        let known = |column: &str| if column == "leave" { None } else { row.get(column) };
        call.answer(known).unwrap_or_else(|| panic!("not an answer: {row:?}"))
    }

    /// Runs one heartbeat.
    fn heartbeat(&mut self, client: &mut Client) -> Effect {
        let before = self.before;
        loop {
            match beat(client, &mut self.member, LAYOUT, |client, call| MixedServer::send(client, call, before)) {
                Effect::Refused(RegistryRefusal::Life) => {}
                effect => return effect,
            }
        }
    }
}

/// A registry whose clock is stepped, and all servers of its fleet.
struct MixedFleet {
    registry: Cluster,
    servers: Vec<MixedServer>,
    ledger: GrantedRanges,
    steps: u32,
}

/// A step of the clock, in seconds.
const STEP: u32 = 1_800;

impl MixedFleet {
    /// Steps the clock by some hours. All servers send heartbeats. Those that have a worker ID keep one.
    fn pass(&mut self, hours: u32) {
        for _ in 0..2 * hours {
            self.steps += 1;
            self.registry.set_clock(&self.clock());
            self.beat();
        }
    }

    fn clock(&self) -> String {
        format!("+{}", self.steps * STEP)
    }

    fn beat(&mut self) {
        let mut client = self.registry.connect();
        // A server gives a spare worker ID back, claims a different one, and renews its first grant, which is short.
        for _ in 0..3 {
            for server in &mut self.servers {
                let holds = matches!(server.member.standing(), MemberStanding::Holding(_));
                let effect = server.heartbeat(&mut client);
                let kept = matches!(effect, Effect::Renewed | Effect::Assigned);
                let waits = matches!(effect, Effect::Refused(RegistryRefusal::Quarantine { .. }));
                assert!(kept || (!holds && waits), "step {}: {} got {effect:?}", self.steps, server.name);
                server.member.record().into_iter().for_each(|record| self.ledger.note(record));
            }
        }
        self.ledger.check().unwrap();
    }

    fn numbers(&self) -> Vec<u32> {
        self.servers.iter().map(|server| number(&server.member)).collect()
    }

    /// Restarts the machine of a server: another one takes its place.
    fn replace(&mut self, old: &str, name: &'static str, before: bool) {
        let server = self.servers.iter_mut().find(|server| server.name == old).expect("it is there");
        *server = MixedServer::start(name, before);
        self.beat();
    }

    fn upgrade(&self) {
        run(&self.registry, "postgres", &upgrade_script()).expect("the upgrade runs");
    }
}

/// The registry is upgraded, loses the upgrade in a failover, and is upgraded again. Machines are restarted with either version.
#[test]
fn servers_of_both_versions_repeat_nothing_for_a_day_and_a_half() {
    let registry = before(Cluster::builder("upgraded_mixed").clock("+0"), LAYOUT);
    let servers = ["old 1", "old 2", "old 3", "old 4"].map(|name| MixedServer::start(name, true)).into();
    let mut world = MixedFleet { registry, servers, ledger: GrantedRanges::default(), steps: 0 };
    world.pass(1);
    let behind = Cluster::builder("upgraded_behind").unset("shared_preload_libraries").clock("+0");
    let mut behind = world.registry.backup(behind.set("restore_command", "false"));
    world.pass(1);
    world.upgrade();
    world.servers.push(MixedServer::start("new 1", false));
    world.replace("old 4", "new 4", false);
    world.pass(1);
    let numbers = world.numbers();

    // The other server knows neither the upgrade nor the new servers.
    world.registry.stop(Stop::Immediate);
    Host::get().write(&behind.dir().join("recovery.signal"), "");
    behind.set_clock(&world.clock());
    behind.start();
    let promoted = || !behind.connect().one::<bool>("SELECT pg_is_in_recovery()");
    assert!(within(cluster::PATIENCE, promoted), "{}", behind.log());
    world.registry = behind;
    world.pass(1);
    assert_eq!(world.numbers(), numbers);
    // In the quarantine, servers of both versions get spare worker IDs with the leases of the version before.
    world.replace("old 2", "old 5", true);
    world.replace("new 4", "new 5", false);
    world.pass(1);
    world.upgrade();
    world.beat();
    // The servers whose worker IDs are not spare ones keep them: "old 1", "old 3" and "new 1".
    let kept = world.numbers();
    assert_eq!([0, 2, 4].map(|n| kept[n]), [0, 2, 4].map(|n| numbers[n]));
    world.replace("new 1", "new 6", false);
    world.pass(1);
    begin_timeline(&mut world.registry);
    world.replace("old 3", "old 6", true);
    world.pass(30);

    // The quarantine is over. New servers have given their spare worker IDs back, and others keep them.
    for server in &world.servers {
        let worker = number(&server.member);
        assert!(server.before || worker < SPARE, "{} has worker ID {worker}", server.name);
    }
    let spare = world.servers.iter().filter(|server| number(&server.member) >= SPARE).count();
    println!("{} grants, {spare} servers of the version before with spare worker IDs", world.ledger.0.len());
    assert!(spare > 0, "no server of the version before has got a spare worker ID");
    assert!(world.ledger.0.len() >= 9, "{:?}", world.ledger.0);
}
