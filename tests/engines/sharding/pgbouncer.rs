//! A server behind PgBouncer in transaction mode.

use std::thread;

use cluster::{Answer, Client, Cluster, History, PgBouncer, Scratch, assert_caught, ensure, loopback, sqlstate, typed};
use postgres::{Config, NoTls};

use crate::sharding::page::{SHOP, ShardHosts, Workers, compare, section, shop};

/// The number of clients, more than the server connections of the pool, and of the requests of each client.
const CLIENTS: usize = 8;
const REQUESTS: usize = 300;
/// The size of a block in the page's statement.
const BLOCK: i64 = 100;

/// A server and PgBouncer with the configuration of the page.
struct PgBouncerPool {
    pgbouncer: PgBouncer,
    _files: Scratch,
    server: Cluster,
    /// The statements that work through PgBouncer, and the ones that show the effect of SET.
    statements: [String; 3],
}

impl PgBouncerPool {
    /// Starts both. `connections` replaces the number of server connections on the page.
    fn start(test: &'static str, connections: &str) -> PgBouncerPool {
        let hosts = ShardHosts::new(test, Workers::Configured, "");
        let server = hosts.start("db1", |builder| builder);
        let table = "CREATE EXTENSION snowflake_pg; CREATE ROLE shop LOGIN;
                     CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL);
                     GRANT SELECT, INSERT ON orders TO shop; GRANT CREATE ON DATABASE shop TO shop";
        shop(&server).batch_execute(table).expect("a superuser may");

        let infos = ["ini pgbouncer", "text userlist", "sql pooled", "sql set", "text"];
        let [settings, users, pooled, set, shown] = section("PgBouncer in transaction mode").rest(infos);
        let files = Scratch::new(&format!("sharding_{test}.files"));
        let list = files.write("userlist.txt", &users).display().to_string();
        let address = loopback(0);
        assert!(settings.contains("default_pool_size = 20\n") && settings.contains("10.0.0.5"), "{settings}");
        let settings =
            hosts.here(&settings).replace("10.0.0.5", &address).replace("/etc/pgbouncer/userlist.txt", &list);
        let settings = settings.replace("default_pool_size = 20", &format!("default_pool_size = {connections}"));
        let mut config = Config::new();
        config.host(&address).port(6432).user("shop").password("example-secret").dbname(SHOP);
        let pgbouncer =
            PgBouncer::start(&format!("sharding_{test}"), &settings, &config).expect("scripts/setup engines");
        PgBouncerPool { pgbouncer, _files: files, server, statements: [pooled, set, shown] }
    }

    fn connect(&self) -> Client {
        self.pgbouncer.config().connect(NoTls).expect("PgBouncer accepts clients")
    }

    /// Types a block into a psql that is connected to PgBouncer.
    fn psql(&self, text: &str) -> Result<String, String> {
        let mut psql = self.server.psql();
        psql.args(["-d", SHOP, "-U", "shop", "-h", &loopback(0), "-p", "6432"]).env("PGPASSWORD", "example-secret");
        typed(psql, text)
    }
}

/// Runs a statement as an unnamed statement, and returns its only value.
fn one(client: &mut Client, sql: &str) -> Result<i64, postgres::Error> {
    Ok(client.query_typed(sql, &[])?[0].get(0))
}

/// Clients get IDs in each way of the page, and other clients use the same server connections in between.
fn load(pool: &PgBouncerPool) -> History {
    let statements: Vec<&str> = pool.statements[0].lines().collect();
    assert_eq!(statements.len(), 3, "{statements:?}");
    let client = |number: usize| {
        let mut client = pool.connect();
        let mut ids = Vec::new();
        for request in 0..REQUESTS {
            let statement = statements[(request + number) % statements.len()].trim_end_matches(';');
            let id = one(&mut client, statement).unwrap_or_else(|e| panic!("{statement}: {e:?}"));
            let count = if statement.contains("snowflake_reserve") { BLOCK } else { 1 };
            ids.extend(id..id + count);
        }
        ids
    };
    thread::scope(|scope| {
        let client = &client;
        let running: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        let stretches = running.into_iter().map(|one| one.join().expect("each client is served")).collect();
        History { stretches, ..History::default() }
    })
}

/// A client draws an ID, and another client draws one before the first asks for its last ID.
fn check_last(client: &mut Client, other: &mut Client) -> Result<(), String> {
    let id = one(client, "SELECT snowflake_nextval()").expect("an ID");
    one(other, "SELECT snowflake_nextval()").expect("an ID");
    let last = one(client, "SELECT snowflake_currval()").expect("the session has drawn IDs");
    ensure!(last == id, "{last} is another client's ID");
    Ok(())
}

#[test]
fn clients_of_a_pool_get_ids_of_their_own() {
    let pool = PgBouncerPool::start("pool", "3");
    let history = load(&pool);
    let blocks = CLIENTS * REQUESTS / 3;
    history.check(blocks * (2 + BLOCK as usize)).unwrap();
    let mut direct = shop(&pool.server);
    assert_eq!(direct.one::<i64>("SELECT count(*) FROM orders"), blocks as i64);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'";
    assert!((1..=3).contains(&direct.one::<i64>(sessions)), "the clients had sessions of their own");
    // psql, too, uses the statements of the page.
    pool.psql(&pool.statements[0]).unwrap();
}

#[test]
fn what_a_session_keeps_reaches_other_clients() {
    let pool = PgBouncerPool::start("shared", "1");
    let (mut first, mut second) = (pool.connect(), pool.connect());
    // The last ID. The control has sessions of its own.
    assert_caught(check_last(&mut first, &mut second), "is another client's ID");
    check_last(&mut shop(&pool.server), &mut shop(&pool.server)).unwrap();

    // No session can set a setting of the extension.
    let refused = pool.psql(&pool.statements[1]).expect_err("a setting of the server");
    compare(&refused, &pool.statements[2]).unwrap();
    let names: Vec<String> = shop(&pool.server).all("SELECT name FROM pg_settings WHERE name LIKE 'snowflake\\_pg.%'");
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let set = first.batch_execute(&format!("SET {name} = DEFAULT")).expect_err(&name);
        assert!(["55P02", "42501"].contains(&sqlstate(&set).0.as_str()), "{name}: {set:?}");
    }

    // One client's search path makes a call of another client fail, but not a column default.
    first.batch_execute("CREATE SCHEMA audit; SET search_path = audit").expect("a client may");
    let (code, message) = second.refusal("SELECT snowflake_nextval()");
    assert_eq!((code.as_str(), message.as_str()), ("42883", "function snowflake_nextval() does not exist"));
    one(&mut second, "INSERT INTO public.orders (customer) VALUES ('Ada') RETURNING id").unwrap();
    // SET LOCAL ends with the transaction.
    first.batch_execute("RESET search_path; BEGIN; SET LOCAL search_path = audit; COMMIT").expect("a client may");
    one(&mut second, "SELECT snowflake_nextval()").unwrap();
}

#[test]
fn a_prepared_statement_is_missing_in_another_session() {
    let pool = PgBouncerPool::start("prepared", "2");
    let (mut first, mut second) = (pool.connect(), pool.connect());
    first.batch_execute("PREPARE draw AS SELECT snowflake_nextval()").expect("a client may");
    // The transaction of the other client takes the session in which the statement is.
    second.batch_execute("BEGIN; EXECUTE draw").expect("the session has the statement");
    let (code, message) = first.refusal("EXECUTE draw");
    assert_eq!((code.as_str(), message.as_str()), ("26000", "prepared statement \"draw\" does not exist"));
    // An unnamed statement is sent together with its execution.
    one(&mut first, "SELECT snowflake_nextval()").unwrap();
    second.batch_execute("ROLLBACK").expect("a transaction");
}
