//! SeaORM.

use sea_orm::entity::prelude::*;
use sea_orm::{ActiveValue::Set, ConnectOptions, Database, DbBackend, QueryOrder, Statement};

use crate::Outcome;

mod customer {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "customers")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub name: String,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

fn named(name: &str) -> customer::ActiveModel {
    customer::ActiveModel { name: Set(name.into()), ..Default::default() }
}

pub async fn main() -> Outcome {
    let db = Database::connect(ConnectOptions::new("postgres://")).await?;

    let ada = named("Ada").insert(&db).await?;

    println!("insert {} {}", ada.id, ada.name);

    let rows = customer::Entity::insert_many([named("Grace"), named("Edsger")]).exec_with_returning(&db).await?;

    for row in rows {
        println!("bulk {} {}", row.id, row.name);
    }

    let names = ["Barbara", "Donald", "Alan"];
    let query = Statement::from_sql_and_values(
        DbBackend::Postgres,
        "SELECT snowflake_reserve($1) AS first",
        [(names.len() as i32).into()],
    );
    let first: i64 = db.query_one_raw(query).await?.expect("a row").try_get("", "first")?;
    let customers = (first..).zip(names).map(|(id, name)| customer::ActiveModel { id: Set(id), ..named(name) });
    customer::Entity::insert_many(customers).exec(&db).await?;

    for (id, name) in (first..).zip(names) {
        println!("block {id} {name}");
    }
    for row in customer::Entity::find().order_by_asc(customer::Column::Id).all(&db).await? {
        println!("read {} {}", row.id, row.name);
    }

    let id = first + 100;
    let tony = customer::ActiveModel { id: Set(id), ..named("Tony") };
    let refused = tony.save(&db).await; // an UPDATE of no row

    println!("refused {} Tony", matches!(refused, Err(DbErr::RecordNotUpdated)));
    Ok(())
}
