//! Types the blocks of docs/orders.md about tags: numbers that servers take in blocks, and that a tag skips after a failover.

use cluster::{Answer, Cluster, Recipe, Stop};

use crate::fleet::hosts::{FleetHosts, check, check_log, check_next, psql};

const PAGE: &str = "docs/orders.md";

/// Takes a block of the tag of the page, and returns its first number.
fn take(registry: &Cluster) -> i64 {
    let take = "SELECT (snowflake_registry.take(fleet_id, 'orders', gen_random_uuid(), 100)).first FROM snowflake_registry.fleet";
    registry.connect_to("fleet").one(take)
}

fn next(registry: &Cluster) -> i64 {
    registry.connect_to("fleet").one("SELECT next_value FROM snowflake_registry.segments")
}

#[test]
fn a_tag_is_created_and_created_again_above_its_numbers() {
    let hosts = FleetHosts::new("tags");
    let registry = hosts.registry("registry.example", "41:10:12");
    let mut create = Recipe::of(PAGE, "Create segments");
    let (statements, shown) = (create.block("sql tag"), create.block("text"));
    // The statements can be typed once, but their output is awaited.
    let (created, view) = statements.split_once('\n').expect("two statements");
    let (number, rows) = shown.split_once("\n\n").expect("two results");
    check(&registry, "fleet", &format!("BEGIN; {created} ROLLBACK;"), &format!("{number}\n"));
    psql(&registry, "fleet", created).unwrap();
    check(&registry, "fleet", view, rows);
    assert_eq!(take(&registry), 1);
    psql(&registry, "fleet", &create.block("sql drop")).unwrap();
    assert!(create.is_empty());
    assert_eq!(take(&registry), 101);
    assert_eq!(next(&registry), 201);
}

#[test]
fn a_tag_skips_the_numbers_that_the_page_says() {
    let hosts = FleetHosts::new("holes");
    let mut registry = hosts.registry("registry.example", "41:10:12");
    psql(&registry, "fleet", &Recipe::of(PAGE, "Create segments").block("sql tag")).unwrap();
    assert_eq!(take(&registry), 1);
    let standby = registry.standby(hosts.builder("registry2.example"));
    registry.stop(Stop::Fast);
    standby.promote();
    assert_eq!(take(&standby), 101 + 256 * 10_000);
    let mut skips = Recipe::of(PAGE, "A segment skips numbers after a failover");
    check_next(&mut skips, "sql holes", &standby, "fleet");
    check_log(&standby, &skips.block("text skip"));
    assert!(skips.is_empty());
    // The other rows of the table: the timeline is n higher, or the number of lives is unknown.
    for (life, steps, known) in [(3, 2, true), (4, 8, false)] {
        let mut client = standby.connect_to("fleet");
        let timeline = if known { 2 - steps } else { 9 };
        let put = format!(
            "UPDATE snowflake_registry.fleet SET timeline = {timeline}; SELECT snowflake_registry.mark_fleet()"
        );
        client.batch_execute(&put).expect("a superuser may");
        let before = next(&standby);
        assert_eq!(take(&standby) - before, 64 * 10_000 * (2 * steps - 1) * (3 + steps), "life {life}");
    }
}
