//! Partitioned by a time: pg_partman goes on, whatever the keys are.

use cluster::{Answer, Client};

use super::{blocks, installed, maintain, run};
use crate::migration::page::AS_WRITTEN;

/// The sections with blocks, and how many blocks each has.
pub const SECTIONS: &[(&str, usize)] = &[(TIME, 1)];

const TIME: &str = "Partitioned by a time";

/// 240 visits, one an hour, in the last ten days.
const TABLES: &str = "CREATE TABLE visits (id bigserial, page text NOT NULL CHECK (page <> ''),
        created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at);
    CREATE INDEX ON visits (page);
    SELECT partman.create_parent('public.visits', 'created_at', 'native', 'daily',
        p_start_partition := (now() - interval '11 days')::text);
    INSERT INTO visits (page, created_at) SELECT 'page ' || n, now() - (240 - n) * interval '1 hour'
    FROM generate_series(1, 240) AS n";

const WRITE: &str = "INSERT INTO visits (page) VALUES ('live')";

/// Sets a retention of five days, so that maintenance drops five partitions with old rows.
const RETENTION: &str = "UPDATE partman.part_config SET retention = '5 days', retention_keep_table = false
    WHERE parent_table = 'public.visits'";

fn files(session: &mut Client) -> String {
    session.one("SELECT string_agg(DISTINCT pg_relation_filenode(tableoid)::text, ',') FROM visits WHERE id <= 240")
}

#[test]
fn a_table_by_time_needs_only_another_default() {
    let Some(()) = installed() else { return };
    let mut run = run(AS_WRITTEN, TABLES);
    let before = files(&mut run.server.connect());
    run.busy(&blocks(TIME), WRITE, |session, _| maintain(session)).unwrap();
    let mut session = run.server.connect();
    session.batch_execute(WRITE).unwrap();
    assert_eq!(files(&mut session), before);
    let new = "SELECT count(*) FROM visits WHERE id >= 1::bigint << 60";
    assert!(session.one::<i64>(new) > 0);
    // pg_partman's retention also counts days for the table with both kinds of keys.
    session.batch_execute(RETENTION).unwrap();
    maintain(&mut session).unwrap();
    let oldest: bool = session.one("SELECT min(created_at) > now() - interval '6 days' FROM visits");
    assert!(oldest, "retention has ended");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM visits_default"), 0);
    // The way back.
    let kept: i64 = session.one(new);
    session.batch_execute("ALTER TABLE visits ALTER COLUMN id SET DEFAULT nextval('visits_id_seq')").unwrap();
    session.batch_execute(WRITE).unwrap();
    assert_eq!(session.one::<i64>(new), kept);
}
