//! Each alert fires when it must, and only then.

use cluster::{assert_caught, ensure, tool};

use crate::monitoring::exporter::scratch;
use crate::monitoring::page::{self, after};

/// A case: what happens, the series in promtool's notation with one sample a minute, the minute to check, and all alerts that
/// must fire in that minute. A series without labels is a metric of the server `a`.
type AlertCase<'a> = (&'a str, &'a str, u32, &'a [&'a str]);

const CASES: &[AlertCase] = &[
    (
        "two primaries with a worker ID",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='b', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 0+0x5 1+0x15",
        6,
        &["SnowflakeSameWorkerID"],
    ),
    (
        "a primary with two standbys",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='b', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 0+0x20
         snowflake_pg_server_primary{instance='c', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 0+0x20",
        20,
        &[],
    ),
    (
        "a failover",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x9 stale
         snowflake_pg_server_primary{instance='b', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 0+0x9 1+0x10",
        10,
        &[],
    ),
    (
        "a worker ID in two datacenters, and servers without",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='36:5:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='b', worker_id='7', datacenter_id='1', layout='36:5:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='c', worker_id='', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='d', worker_id='', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20",
        20,
        &[],
    ),
    (
        "two epochs",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20
         snowflake_pg_server_primary{instance='b', worker_id='8', datacenter_id='0', layout='41:10:12', epoch='1'}: 1+0x20",
        11,
        &["SnowflakeLayoutsDiffer"],
    ),
    (
        "two layouts for nine minutes",
        "snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x9 stale
         snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:8:14', epoch='0'}: _x9 1+0x9
         snowflake_pg_server_primary{instance='b', worker_id='8', datacenter_id='0', layout='41:8:14', epoch='0'}: 1+0x20",
        9,
        &[],
    ),
    (
        "rows that a guard refuses every five seconds",
        "guard_refusals_total: 0 0 0 12+12x10",
        3,
        &["SnowflakeReplicatedRowRefused"],
    ),
    ("a guard that refused rows long ago", "guard_refusals_total: 0 12+0x40", 20, &[]),
    ("refused", "refused: 0 1+0x5", 2, &["SnowflakeRefused"]),
    ("refused at the start", "refused: 1 0 0 0", 1, &[]),
    ("waiting", "waiting: 0 1+0x5", 2, &["SnowflakeWaiting"]),
    ("a standby that restarts", "waiting: 1 0 0 0", 1, &[]),
    (
        "a standby with the number of its primary",
        "standby_has_primary_worker_id: 1+0x20
         snowflake_pg_standby_has_primary_worker_id{instance='b'}: 0+0x20",
        16,
        &["SnowflakeStandbyHasPrimaryWorkerID"],
    ),
    ("a former primary that has just joined", "standby_has_primary_worker_id: 1+0x10 0+0x10", 16, &[]),
    ("a mark twelve hours ahead", "mark_lead_seconds: 43210", 0, &["SnowflakeRestartWouldRefuse"]),
    ("a mark nearly twelve hours ahead", "mark_lead_seconds: 43190", 0, &[]),
    ("a clock set back by a minute", "lead_seconds: 60-5x20", 5, &["SnowflakeLead"]),
    ("a lead after a crash", "lead_seconds: 20+0x60", 60, &[]),
    ("a lead that is gone in time", "lead_seconds: 40-6x4 0+0x9", 6, &[]),
    ("no ID yet", "lead_seconds: NaN+0x60", 60, &[]),
    ("a jump that is not followed", "lead_seconds: -2+0x30\nextensions_total: 0+1x30", 15, &["SnowflakeClockNotFollowed"]),
    ("a jump of a server at rest", "lead_seconds: 0+0x5 -7200+0x25\nextensions_total: 0+1x5 5+0x25", 16, &[]),
    ("half a second behind", "lead_seconds: -0.5+0x30\nextensions_total: 0+1x30", 30, &[]),
    ("a clock set back", "clock_regressions_total: 3+0x5 4+0x90", 30, &["SnowflakeClockSetBack"]),
    ("a clock set back long ago", "clock_regressions_total: 3+0x5 4+0x90", 90, &[]),
    ("a restart after it", "clock_regressions_total: 4+0x5 0+0x90", 30, &[]),
    ("throttled for long", "throttled_seconds_total: 0+66x40", 35, &["SnowflakeThrottled"]),
    ("throttled less", "throttled_seconds_total: 0+54x40", 40, &[]),
    ("a bulk load", "throttled_seconds_total: 0+0x15 0+400x5 2000+0x40", 29, &[]),
    ("waits for the mark", "mark_wait_seconds_total: 0+6.6x20", 12, &["SnowflakeMarkSlow"]),
    ("fewer waits for the mark", "mark_wait_seconds_total: 0+5.4x20", 20, &[]),
    ("two years left", "years_left: 2.01", 0, &[]),
    ("less than two", "years_left: 1.99", 0, &["SnowflakeLayoutEnds"]),
    ("less than half a year left", "years_left: 0.49", 0, &["SnowflakeLayoutEnds", "SnowflakeLayoutEndsSoon"]),
    ("a fenced server", "fenced: 0 1", 1, &["SnowflakeFenced"]),
    ("servers without a registry", "fenced: NaN+0x20", 20, &[]),
    ("a registry that is down", "failed_heartbeats: 0 1+1x20", 11, &["SnowflakeHeartbeatsFail"]),
    ("a registry that was down", "failed_heartbeats: 0 1+1x8 0+0x20", 12, &[]),
    ("segments without new numbers", "segments_failing: 0 2+0x20", 11, &["SnowflakeSegmentsFail"]),
    ("segments that failed for nine minutes", "segments_failing: 0 2+0x8 0+0x20", 12, &[]),
    ("segments without numbers", "segments_empty: 0 1+0x5", 2, &["SnowflakeSegmentsEmpty"]),
    ("segments that were empty for a moment", "segments_empty: 1 0 0 0", 1, &[]),
    ("half of the lease", "grant_left_ratio: 0.51 0.49+0x20", 6, &["SnowflakeGrantHalf"]),
    ("more than half of the lease", "grant_left_ratio: 0.51+0x20", 20, &[]),
    ("a first grant", "grant_left_ratio: 0.01+0x4 1+0x20", 6, &[]),
    ("a quarter of the lease", "grant_left_ratio: 0.24+0x20", 5, &["SnowflakeGrantHalf", "SnowflakeGrantQuarter"]),
    ("a third of the lease", "grant_left_ratio: 0.26+0x20", 20, &["SnowflakeGrantHalf"]),
    ("a clock ahead", "clock_offset_seconds: 1.1+0x20", 5, &["SnowflakeClockSkew"]),
    ("a clock behind", "clock_offset_seconds: -1.1+0x20", 5, &["SnowflakeClockSkew"]),
    ("a clock that is nearly right", "clock_offset_seconds: -0.9+0x20", 20, &[]),
    ("a quarantine", "snowflake_registry_quarantine{instance='r'}: 0 1", 1, &["SnowflakeRegistryQuarantine"]),
    (
        "few worker IDs",
        "snowflake_registry_worker_ids_free{instance='r', datacenter_id='0'}: 89+0x20
         snowflake_registry_worker_ids_total{instance='r', datacenter_id='0'}: 896+0x20",
        10,
        &["SnowflakeWorkerIDsLow"],
    ),
    (
        "enough worker IDs",
        "snowflake_registry_worker_ids_free{instance='r', datacenter_id='0'}: 90+0x20
         snowflake_registry_worker_ids_total{instance='r', datacenter_id='0'}: 896+0x20",
        20,
        &[],
    ),
    ("no figures", "pg_up{instance='a'}: 1+0x20", 10, &["SnowflakeUnwatched"]),
    (
        "figures of a registry, and a server without figures",
        "pg_up{instance='r'}: 1+0x20
         snowflake_registry_life{instance='r', server='r:5432'}: 1+0x20
         pg_up{instance='a'}: 1+0x20",
        20,
        &["SnowflakeUnwatched"],
    ),
    (
        "figures of a registry",
        "pg_up{instance='r'}: 1+0x20
         snowflake_registry_life{instance='r', server='r:5432'}: 1+0x20",
        20,
        &[],
    ),
    (
        "figures, and a server that is down",
        "pg_up{instance='a'}: 1+0x20
         pg_up{instance='b'}: 0+0x20
         snowflake_pg_server_primary{instance='a', worker_id='7', datacenter_id='0', layout='41:10:12', epoch='0'}: 1+0x20",
        20,
        &[],
    ),
];

/// Returns the cases as a file for `promtool test rules`.
fn unit_tests(cases: &[AlertCase]) -> String {
    let mut text = String::from("rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n");
    for (what, series, minute, expected) in cases {
        text.push_str(&format!("  - name: {what}\n    interval: 1m\n    input_series:\n"));
        for line in series.lines() {
            let (name, values) = line.trim().split_once(": ").expect("a series and its values");
            let known =
                if name.contains('{') { name.to_string() } else { format!("snowflake_pg_{name}{{instance='a'}}") };
            text.push_str(&format!("      - series: \"{known}\"\n        values: '{values}'\n"));
        }
        // No alert has the label `case`. It is here because promtool prints the expression if a case fails, and not the name.
        let firing = format!("ALERTS{{alertstate='firing', case!='{what}'}}");
        text.push_str(&format!("    promql_expr_test:\n      - expr: count by (alertname) ({firing})\n"));
        text.push_str(&format!("        eval_time: {minute}m\n        exp_samples:\n"));
        for alert in *expected {
            text.push_str(&format!("          - {{labels: '{{alertname=\"{alert}\"}}', value: 1}}\n"));
        }
    }
    text
}

pub fn promtool(what: &str, file: &str, files: &[(&str, &str)]) -> Result<(), String> {
    let scratch = scratch();
    for (name, text) in files {
        scratch.write(name, text);
    }
    let output = tool("promtool").args([what, "rules", file]).current_dir(&scratch.0).output().expect("promtool runs");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{said}");
    Ok(())
}

fn check_cases(rules: &str) -> Result<(), String> {
    promtool("test", "cases.yaml", &[("rules.yaml", rules), ("cases.yaml", &unit_tests(CASES))])
}

#[test]
fn each_alert_fires_where_it_must_and_only_there() {
    check_cases(&page::rules()).unwrap();
}

#[test]
fn an_alert_that_never_fires_is_caught() {
    let mut rules = page::rules();
    for expression in after(&page::rules(), "expr: ") {
        rules = rules.replacen(&format!("expr: {expression}\n"), "expr: vector(0) > 1\n", 1);
    }
    let outcome = check_cases(&rules);
    let alerts = after(&rules, "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in alerts {
        assert_caught(outcome.clone(), &format!("{{alertname=\"{alert}\"}} 1E+00"));
    }
}

/// Thresholds of the rules. For each, there are two other thresholds, with the case that fails if the rules have this one.
const OTHERS: [(&str, [(&str, &str); 2]); 11] = [
    ("> 43200", [("> 43220", "a mark twelve hours ahead"), ("> 43180", "a mark nearly twelve hours ahead")]),
    (
        "_lead_seconds > 30",
        [("_lead_seconds > 61", "a clock set back by a minute"), ("_lead_seconds > 19", "a lead after a crash")],
    ),
    ("< -1 ", [("< -3 ", "a jump that is not followed"), ("< -0.4 ", "half a second behind")]),
    ("[15m]) > 1", [("[15m]) > 1.2", "throttled for long"), ("[15m]) > 0.8", "throttled less")]),
    ("> 0.1", [("> 0.12", "waits for the mark"), ("> 0.08", "fewer waits for the mark")]),
    ("< 2", [("< 1.9", "less than two"), ("< 2.1", "two years left")]),
    ("years_left < 0.5", [("years_left < 0.4", "less than half a year left"), ("years_left < 2", "less than two")]),
    ("ratio < 0.5", [("ratio < 0.48", "half of the lease"), ("ratio < 0.52", "more than half of the lease")]),
    ("ratio < 0.25", [("ratio < 0.23", "a quarter of the lease"), ("ratio < 0.27", "a third of the lease")]),
    (
        "offset_seconds) > 1",
        [("offset_seconds) > 1.2", "a clock ahead"), ("offset_seconds) > 0.8", "a clock that is nearly right")],
    ),
    ("< 0.1 *", [("< 0.08 *", "few worker IDs"), ("< 0.12 *", "enough worker IDs")]),
];

#[test]
fn another_threshold_is_caught() {
    for way in 0..2 {
        let mut rules = page::rules();
        for (threshold, others) in OTHERS {
            let changed = rules.replacen(threshold, others[way].0, 1);
            assert_ne!(changed, rules, "{threshold}");
            rules = changed;
        }
        let outcome = check_cases(&rules);
        for (_, others) in OTHERS {
            assert_caught(outcome.clone(), &format!("case!='{}'", others[way].1));
        }
    }
}

#[test]
fn prometheus_accepts_the_rules() {
    let check = |rules: &str| promtool("check", "rules.yaml", &[("rules.yaml", rules)]);
    check(&page::rules()).unwrap();
    assert_caught(check(&page::rules().replacen("> 43200", "> > 43200", 1)), "could not parse expression");
    assert_caught(check(&page::rules().replacen("        for: 10m", "         for: 10m", 1)), "yaml:");
    assert_caught(check(&page::rules().replacen("{{ $value }}", "{{ $worth }}", 1)), "undefined variable");
}

/// Checks that the exporter has each metric that the rules use.
fn check_metrics(rules: &str) -> Result<(), String> {
    let expressions = after(rules, "expr: ");
    ensure!(expressions.len() > 20, "the rules have the expressions {expressions:?}");
    page::check_known(expressions.into_iter())
}

#[test]
fn each_metric_of_the_alerts_is_one_of_the_exporter() {
    check_metrics(&page::rules()).unwrap();
    let misspelt = page::rules().replacen("years_left < 2", "year_left < 2", 1);
    assert_caught(check_metrics(&misspelt), "the exporter has no metric snowflake_pg_year_left");
}
