//! A role with all privileges on a series and a numbered table, except that it owns neither, replaces triggers, and numbers rows through a
//! partitioned table.

use cluster::{Answer, Cluster};

const OBJECTS: &str = "
    CREATE ROLE low LOGIN;
    GRANT CREATE ON SCHEMA public TO low;
    SELECT snowflake_create_series('inv', 'INV-{n:5}');
    CREATE TABLE orders (id int, number text);
    SELECT snowflake_number_at_commit('orders', 'number', 'inv');
    CREATE TABLE regions (id int, region text, part text, number text) PARTITION BY LIST (region);
    CREATE TABLE region_a PARTITION OF regions FOR VALUES IN ('a') PARTITION BY LIST (part);
    CREATE TABLE region_a_x PARTITION OF region_a FOR VALUES IN ('x');
    CREATE TABLE region_b PARTITION OF regions FOR VALUES IN ('b');
    SELECT snowflake_number_at_commit('region_a', 'number', 'inv');
    CREATE TABLE tenants (id int, tenant text, number text) PARTITION BY LIST (tenant);
    CREATE TABLE tenant_a PARTITION OF tenants FOR VALUES IN ('a');
    CREATE TABLE tenant_b PARTITION OF tenants FOR VALUES IN ('b');
    SELECT snowflake_number_at_commit('tenants', 'number', 'inv');
    GRANT ALL ON inv, orders TO low;
    GRANT SELECT, INSERT, UPDATE ON tenants TO low";

/// A condition that makes the role a superuser if a superuser evaluates it.
const CONDITION: &str = "
    CREATE FUNCTION public.condition() RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        IF current_user <> 'low' THEN ALTER ROLE low SUPERUSER; END IF;
        RETURN true;
    END $$";

#[test]
fn a_trigger_that_a_role_replaces_runs_nothing_as_the_owner() {
    let (server, mut owner) = Cluster::builder("serial_replaced").start_session();
    owner.run(OBJECTS);
    let mut low = server.connect_as("low");
    low.run(CONDITION);
    // PostgreSQL replaces no constraint trigger.
    for replaced in [
        "CREATE OR REPLACE TRIGGER snowflake_series AFTER INSERT OR UPDATE OR DELETE ON inv FOR EACH ROW
             WHEN (public.condition()) EXECUTE FUNCTION snowflake_series_row('INV-{n:5}', 'gapless', 'UTC', '1')",
        "CREATE OR REPLACE TRIGGER snowflake_number_keep AFTER INSERT ON orders FOR EACH ROW
             WHEN (false) EXECUTE FUNCTION snowflake_number_keep('number')",
    ] {
        assert_eq!(low.code(replaced).as_deref(), Some("42710"), "{replaced}");
    }
    assert_eq!(low.code("INSERT INTO orders VALUES (1, 'INV-00009')").as_deref(), Some("428C9"));
    assert_eq!(low.code("INSERT INTO orders VALUES (1)"), None);
    // The other trigger of a series cannot be a constraint trigger. A series with a different one numbers no rows.
    low.run(
        "CREATE OR REPLACE TRIGGER snowflake_series_truncate AFTER INSERT ON inv FOR EACH STATEMENT
             WHEN (public.condition()) EXECUTE FUNCTION snowflake_series_row()",
    );
    assert_eq!(low.code("INSERT INTO orders VALUES (2)").as_deref(), Some("55000"));
    assert!(!owner.one::<bool>("SELECT rolsuper FROM pg_roles WHERE rolname = 'low'"));
}

#[test]
fn rows_of_partitions_are_numbered_with_the_privileges_on_the_partitioned_table() {
    let (server, mut owner) = Cluster::builder("serial_root").start_session();
    owner.run(OBJECTS);
    let mut low = server.connect_as("low");
    // The privileges suffice.
    low.run("INSERT INTO tenants VALUES (1, 'a'), (2, 'b')");
    let numbers: Vec<String> = owner.all("SELECT number FROM tenants ORDER BY id");
    assert_eq!(numbers, ["INV-00001", "INV-00002"]);
    assert_eq!(low.code("INSERT INTO tenant_a VALUES (3, 'a')").as_deref(), Some("42501"));
}

#[test]
fn a_number_that_a_row_has_taken_along_is_not_written_again() {
    let (_server, mut owner) = Cluster::builder("serial_moved").start_session();
    owner.run(OBJECTS);
    owner.run("INSERT INTO regions VALUES (1, 'a', 'x')");
    let again =
        "BEGIN; UPDATE regions SET region = 'b' WHERE id = 1; INSERT INTO region_a VALUES (2, 'a', 'x', 'INV-00001')";
    assert_eq!(owner.code(again).as_deref(), Some("428C9"));
}

/// A partitioned table can be a partition itself.
#[test]
fn rows_of_a_partition_with_partitions_are_numbered() {
    let (server, mut owner) = Cluster::builder("serial_levels").start_session();
    owner.run(OBJECTS);
    // The privileges on the numbered table suffice, and rows that are inserted above get their numbers, too.
    owner.run("GRANT SELECT, INSERT, UPDATE ON region_a TO low");
    let mut low = server.connect_as("low");
    // The privileges suffice.
    low.run("INSERT INTO region_a VALUES (1, 'a', 'x')");
    owner.run("INSERT INTO regions VALUES (2, 'a', 'x')");
    assert_eq!(owner.all::<String>("SELECT number FROM regions ORDER BY id"), ["INV-00001", "INV-00002"]);
    // A second call replaces the triggers.
    owner.run("SELECT snowflake_number_at_commit('region_a', 'number', 'inv')");
    // A table whose partitioned table numbers the same column is refused, and the hint works.
    owner.run("CREATE TABLE tenant_c PARTITION OF tenants FOR VALUES IN ('c') PARTITION BY LIST (id)");
    for partition in ["tenant_a", "tenant_c"] {
        let number = format!("SELECT snowflake_number_at_commit('{partition}', 'number', 'inv')");
        let [code, message, detail, hint] = owner.error(&number);
        assert_eq!(
            [code, message],
            [
                "42710".into(),
                format!(
                    "partitioned table \"public.tenants\" already numbers the rows of partition \"public.{partition}\""
                )
            ]
        );
        assert_eq!([detail, hint], ["", "Number either the partitioned table or its partitions."]);
    }
    owner.run(
        "DROP TRIGGER snowflake_number ON tenants; DROP TRIGGER snowflake_number_keep ON tenants;
         SELECT snowflake_number_at_commit('tenant_a', 'number', 'inv')",
    );
}
