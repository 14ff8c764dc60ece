//! tokio-postgres.

use std::pin::pin;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, NoTls};

use crate::Outcome;

pub async fn main() -> Outcome {
    let mut config = Config::new();
    config.host(std::env::var("PGHOST")?).user("postgres").dbname("postgres");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);

    let row = client.query_one("INSERT INTO customers (name) VALUES ($1) RETURNING id", &[&"Ada"]).await?;
    let ada: i64 = row.get("id");

    println!("insert {ada} Ada");

    let names = ["Grace", "Edsger"];
    let insert = "INSERT INTO customers (name) SELECT unnest($1::text[]) RETURNING id, name";
    let rows = client.query(insert, &[&&names[..]]).await?;

    for row in &rows {
        println!("bulk {} {}", row.get::<_, i64>("id"), row.get::<_, &str>("name"));
    }

    let names = ["Barbara", "Donald", "Alan"];
    let row = client.query_one("SELECT snowflake_reserve($1)", &[&(names.len() as i32)]).await?;
    let first: i64 = row.get(0);
    let sink = client.copy_in("COPY customers (id, name) FROM STDIN (FORMAT binary)").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::TEXT]));
    for (id, name) in (first..).zip(names) {
        writer.as_mut().write(&[&id, &name]).await?;
    }
    writer.finish().await?;

    for (id, name) in (first..).zip(names) {
        println!("block {id} {name}");
    }
    let rows = client.query("SELECT id, name FROM customers ORDER BY id", &[]).await?;
    for row in &rows {
        println!("read {} {}", row.get::<_, i64>("id"), row.get::<_, &str>("name"));
    }

    let refused = rows[0].try_get::<_, i32>("id");

    let error = refused.err().as_ref().and_then(std::error::Error::source).map(ToString::to_string);
    println!("refused {} Ada", error.is_some_and(|error| error.contains("`i32`")));
    Ok(())
}
