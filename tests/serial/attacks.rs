//! Rows are numbered without running the code of other roles: the row is written as the role that commits, and the counter as the owner of
//! the series.

use cluster::{Answer, Client, Cluster, assert_caught, ensure};

/// What numbers the rows.
#[derive(Clone, Copy, PartialEq)]
enum NumberedBy {
    Extension,
    /// A mistake: a trigger function that runs as its owner.
    Definer,
}

/// What the role `low` tries, in order to run its own code as the owner, who is a superuser.
struct Attack {
    /// The privileges of the role, and what the owner has created.
    owner: &'static str,
    /// What the role does. Each statement may fail.
    low: &'static [&'static str],
    /// The SQLSTATE of the last statement, if it fails with the extension.
    refused: Option<&'static str>,
}

const ATTACKS: [Attack; 5] = [
    // A trigger of its own on the table of the owner.
    Attack {
        owner: "GRANT ALL ON books.invoices TO low",
        low: &[
            "CREATE TRIGGER caught BEFORE UPDATE ON books.invoices FOR EACH ROW EXECUTE FUNCTION low.caught()",
            "INSERT INTO books.invoices (id) VALUES (1)",
        ],
        refused: None,
    },
    // A table of its own with a trigger that names the series of the owner.
    Attack {
        owner: "",
        low: &[
            "CREATE TRIGGER caught BEFORE UPDATE ON low.invoices FOR EACH ROW EXECUTE FUNCTION low.caught()",
            "CREATE CONSTRAINT TRIGGER number AFTER INSERT ON low.invoices FROM books.invoice DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION NUMBER('number')",
            "CREATE CONSTRAINT TRIGGER named AFTER INSERT ON low.invoices DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION NUMBER('number', 'books.invoice')",
            "INSERT INTO low.invoices (id) VALUES (1)",
        ],
        refused: Some("39P01"),
    },
    // A temporary table whose name a trigger of the owner does not qualify.
    Attack {
        owner: "GRANT SELECT, INSERT, UPDATE (number) ON books.invoices TO low;
            CREATE TABLE books.audit (id integer);
            CREATE FUNCTION books.audit() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN INSERT INTO audit VALUES (NEW.id); RETURN NEW; END $$;
            CREATE TRIGGER audit BEFORE UPDATE ON books.invoices FOR EACH ROW EXECUTE FUNCTION books.audit()",
        low: &[
            "CREATE TEMPORARY TABLE audit (id integer)",
            "CREATE TRIGGER caught BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION low.caught()",
            "INSERT INTO books.invoices (id) VALUES (1)",
        ],
        refused: None,
    },
    // A trigger of its own on the series.
    Attack {
        owner: "GRANT SELECT, INSERT, UPDATE (number) ON books.invoices TO low; GRANT TRIGGER ON books.invoice TO low",
        low: &[
            "CREATE TRIGGER caught BEFORE INSERT OR UPDATE ON books.invoice FOR EACH ROW EXECUTE FUNCTION low.caught()",
            "INSERT INTO books.invoices (id) VALUES (1)",
        ],
        refused: Some("55000"),
    },
    // The same, for a table of its own that the series may number.
    Attack {
        owner: "GRANT TRIGGER ON books.invoice TO low",
        low: &[
            "CREATE TRIGGER caught BEFORE INSERT OR UPDATE ON books.invoice FOR EACH ROW EXECUTE FUNCTION low.caught()",
            "CREATE CONSTRAINT TRIGGER number AFTER INSERT ON low.invoices FROM books.invoice DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION NUMBER('number')",
            "INSERT INTO low.invoices (id) VALUES (1)",
        ],
        refused: Some("55000"),
    },
];

/// Creates the table and the series of the owner, and the table and the function of the role.
const PREPARE: &str = "
    DROP SCHEMA IF EXISTS books, low CASCADE;
    CREATE SCHEMA books; GRANT USAGE ON SCHEMA books TO low; CREATE SCHEMA low AUTHORIZATION low;
    SELECT snowflake_create_series('books.invoice', 'INV-{n:4}');
    CREATE TABLE books.invoices (id integer, number text UNIQUE);
    CREATE TABLE books.ran (who name); GRANT INSERT ON books.ran TO PUBLIC;
    SET ROLE low;
    CREATE TABLE low.invoices (id integer, number text);
    CREATE FUNCTION low.caught() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO books.ran VALUES (current_user); RETURN NEW; END $$;
    RESET ROLE";

/// The trigger of the mistake, which takes the place of the one of the extension.
const DEFINER: &str = "
    CREATE FUNCTION books.number_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        EXECUTE format('UPDATE %s SET number = public.snowflake_serial(''books.invoice'') WHERE id = $1', tg_relid::regclass)
            USING NEW.id;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER number AFTER INSERT ON books.invoices DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION books.number_row()";

/// Runs one attack. Returns an error if code of the role has run as the owner, or if the role has drawn a number without a privilege.
fn check(owner: &mut Client, server: &Cluster, how: NumberedBy, attack: &Attack) -> Result<(), String> {
    owner.run(PREPARE);
    let number = match how {
        NumberedBy::Extension => "SELECT snowflake_number_at_commit('books.invoices', 'number', 'books.invoice')",
        NumberedBy::Definer => DEFINER,
    };
    owner.run(number);
    owner.run(attack.owner);
    let function = if how == NumberedBy::Extension { "snowflake_number_row" } else { "books.number_row" };
    let mut low = server.connect_as("low");
    let codes: Vec<_> = attack.low.iter().map(|sql| low.code(&sql.replace("NUMBER", function))).collect();
    // Otherwise, the end of the session would drop a temporary table while the owner drops the schemas.
    low.run("DISCARD TEMP");
    let ran: Vec<String> = owner.all("SELECT DISTINCT who::text FROM books.ran WHERE who <> 'low'");
    ensure!(ran.is_empty(), "code of the role ran as {ran:?}: {:?}", attack.low);
    let drawn: i64 = owner.one("SELECT count(*) FROM books.invoice");
    let numbered: i64 = owner.one("SELECT count(number) FROM books.invoices");
    ensure!(drawn == numbered, "a number was drawn: {:?}", attack.low);
    if how == NumberedBy::Extension {
        assert_eq!(codes.last().expect("a statement").as_deref(), attack.refused, "{codes:?} of {:?}", attack.low);
        assert!(numbered == 1 || attack.refused.is_some());
    }
    Ok(())
}

/// What a role does with the privileges of a careless owner, in order to block or move the numbers of a series.
const BLOCKS: [&str; 4] = [
    "INSERT INTO books.invoices VALUES (9, 'INV-0002')",
    "INSERT INTO books.invoices (id) VALUES (8); UPDATE books.invoices SET number = 'INV-0003' WHERE id = 8",
    "INSERT INTO books.invoice VALUES ('', 4711)",
    "INSERT INTO books.invoice VALUES ('', 1); UPDATE books.invoice SET last_number = 4711",
];

/// Runs one of these statements. Returns an error if the next rows do not get the next numbers.
fn check_blocked(owner: &mut Client, server: &Cluster, is_protected: bool, block: &str) -> Result<(), String> {
    owner.run(PREPARE);
    owner.run(
        "SELECT snowflake_number_at_commit('books.invoices', 'number', 'books.invoice');
         GRANT ALL ON books.invoices, books.invoice TO low",
    );
    if !is_protected {
        let disable = "ALTER TABLE books.invoices DISABLE TRIGGER snowflake_number_keep; ALTER TABLE books.invoice DISABLE TRIGGER ALL";
        owner.run(disable);
    }
    let code = server.connect_as("low").code(block);
    assert!(!is_protected || ["428C9", "42501"].map(Some).contains(&code.as_deref()), "{block}: {code:?}");
    let insert = ["INSERT INTO books.invoices VALUES (1)", "INSERT INTO books.invoices VALUES (2)"];
    let codes: Vec<_> = insert.iter().filter_map(|sql| owner.code(sql)).collect();
    ensure!(codes.is_empty(), "the series is blocked: {codes:?} after {block}");
    let numbers: Vec<String> = owner.all("SELECT number FROM books.invoices ORDER BY number");
    ensure!(numbers == ["INV-0001", "INV-0002"], "the numbers are {numbers:?} after {block}");
    Ok(())
}

#[test]
fn a_role_that_inserts_rows_gets_no_right_of_the_owner_and_blocks_no_number() {
    let (server, mut owner) = Cluster::builder("serial_privileges").start_session();
    owner.run("CREATE ROLE low LOGIN");
    for attack in &ATTACKS {
        check(&mut owner, &server, NumberedBy::Extension, attack).unwrap();
        assert_caught(
            check(&mut owner, &server, NumberedBy::Definer, attack),
            "code of the role ran as [\"postgres\"]",
        );
    }
    for (n, block) in BLOCKS.into_iter().enumerate() {
        check_blocked(&mut owner, &server, true, block).unwrap();
        let reason = if n == 0 { "the series is blocked: [\"23505\"" } else { "the numbers are [" };
        assert_caught(check_blocked(&mut owner, &server, false, block), reason);
    }
}
