//! SQLx.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Outcome;

pub async fn main() -> Outcome {
    // The environment has the parameters of the connection.
    let pool = PgPoolOptions::new().connect_with(PgConnectOptions::new()).await?;

    let ada: i64 = sqlx::query_scalar("INSERT INTO customers (name) VALUES ($1) RETURNING id")
        .bind("Ada")
        .fetch_one(&pool)
        .await?;

    println!("insert {ada} Ada");

    let insert = "INSERT INTO customers (name) SELECT unnest($1::text[]) RETURNING id, name";
    let rows: Vec<(i64, String)> = sqlx::query_as(insert).bind(["Grace", "Edsger"]).fetch_all(&pool).await?;

    for (id, name) in rows {
        println!("bulk {id} {name}");
    }

    let names = ["Barbara", "Donald", "Alan"];
    let first: i64 =
        sqlx::query_scalar("SELECT snowflake_reserve($1)").bind(names.len() as i32).fetch_one(&pool).await?;
    let ids: Vec<i64> = (first..).take(names.len()).collect();
    sqlx::query("INSERT INTO customers (id, name) SELECT * FROM unnest($1::bigint[], $2::text[])")
        .bind(&ids)
        .bind(names)
        .execute(&pool)
        .await?;

    for (id, name) in ids.iter().zip(names) {
        println!("block {id} {name}");
    }
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, name FROM customers ORDER BY id").fetch_all(&pool).await?;
    for (id, name) in rows {
        println!("read {id} {name}");
    }

    let refused = sqlx::query_as::<_, (i32, String)>("SELECT id, name FROM customers").fetch_one(&pool).await;

    println!("refused {} Ada", matches!(refused, Err(sqlx::Error::ColumnDecode { .. })));
    Ok(())
}
