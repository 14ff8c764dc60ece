//! Runs the blocks of docs/clients.md for the client that is named as the argument. Each line of the output is a step, an ID and a name.

mod diesel;
mod sea_orm;
mod sqlx;
mod tokio_postgres;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("diesel") => diesel::main(),
        Some("sea_orm") => sea_orm::main().await,
        Some("sqlx") => sqlx::main().await,
        Some("tokio_postgres") => tokio_postgres::main().await,
        client => Err(format!("{client:?} is not a client").into()),
    }
}
