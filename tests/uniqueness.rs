//! x
use cluster::{Answer, Cluster};
#[test]
fn smoke() {
    let c = Cluster::builder("smoke").start();
    let mut s = c.session();
    for q in [
        "select snowflake_nextval()::text",
        "select snowflake_describe(snowflake_nextval())::text",
        "select snowflake_decode(snowflake_nextval())::text",
        "select now()::text||snowflake_timestamp(snowflake_nextval())::text||snowflake_currval()",
    ] {
        println!("{}", s.one::<String>(q));
    }
    for q in [
        "select snowflake_decode(-1)",
        "select snowflake_nextval_batch(0)",
        "select snowflake_reserve(4097)",
        "select snowflake_min_id('infinity')",
    ] {
        println!("{:?}", cluster::sqlstate(&s.batch_execute(q).unwrap_err()));
    }
    println!(
        "{}",
        s.one::<String>(
            "select (select count(*) from generate_series(1,10000000) where snowflake_nextval() is not null)::text"
        )
    );
}
