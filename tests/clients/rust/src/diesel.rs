//! Diesel.

use diesel::prelude::*;
use diesel::sql_types::Integer;

use crate::Outcome;

diesel::table! {
    customers (id) {
        id -> BigInt,
        name -> Text,
    }
}

#[derive(Insertable, Queryable, Selectable)]
struct Customer {
    id: i64,
    name: String,
}

#[derive(Insertable)]
#[diesel(table_name = customers)]
struct NewCustomer<'a> {
    name: &'a str,
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn snowflake_reserve(count: Integer) -> BigInt;
}

pub fn main() -> Outcome {
    let mut connection = PgConnection::establish("")?;

    let ada: i64 = diesel::insert_into(customers::table)
        .values(&NewCustomer { name: "Ada" })
        .returning(customers::id)
        .get_result(&mut connection)?;

    println!("insert {ada} Ada");

    let rows: Vec<Customer> = diesel::insert_into(customers::table)
        .values(&[NewCustomer { name: "Grace" }, NewCustomer { name: "Edsger" }])
        .returning(Customer::as_returning())
        .get_results(&mut connection)?;

    for Customer { id, name } in rows {
        println!("bulk {id} {name}");
    }

    let names = ["Barbara", "Donald", "Alan"];
    let first: i64 = diesel::select(snowflake_reserve(names.len() as i32)).get_result(&mut connection)?;
    let customers: Vec<Customer> = (first..).zip(names).map(|(id, name)| Customer { id, name: name.into() }).collect();
    diesel::insert_into(customers::table).values(&customers).execute(&mut connection)?;

    for Customer { id, name } in customers {
        println!("block {id} {name}");
    }
    let rows = customers::table.order(customers::id).select(Customer::as_select()).load(&mut connection)?;
    for Customer { id, name } in rows {
        println!("read {id} {name}");
    }

    let refused = trap::customers::table.select(trap::customers::id).first::<i32>(&mut connection);

    println!("refused {} Ada", matches!(refused, Err(diesel::result::Error::DeserializationError(_))));
    Ok(())
}

mod trap {
    diesel::table! {
        customers (id) {
            id -> Integer,
            name -> Text,
        }
    }
}
