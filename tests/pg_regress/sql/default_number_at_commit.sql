-- The trigger that numbers rows at the end of the transaction. What other sessions do is in tests/serial.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA sales;
GRANT USAGE ON SCHEMA sales TO PUBLIC;
SET search_path = sales, public;
SELECT snowflake_create_series('invoice', 'INV-{n:4}');
CREATE TABLE invoices (id bigint PRIMARY KEY, number text UNIQUE, amount integer);
SELECT snowflake_number_at_commit('invoices', 'number', 'invoice');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'invoices'::regclass ORDER BY 1;

-- RETURNING has no number yet.
INSERT INTO invoices VALUES (1) RETURNING number;
SELECT id, number FROM invoices;
-- Rows are numbered in the order in which they were last changed. A row that was deleted takes no number, and no row takes two.
BEGIN;
INSERT INTO invoices VALUES (2), (3), (4);
UPDATE invoices SET amount = 10 WHERE id = 2;
UPDATE invoices SET amount = amount + 1 WHERE id = 2;
DELETE FROM invoices WHERE id = 3;
SAVEPOINT s;
INSERT INTO invoices VALUES (5);
ROLLBACK TO s;
INSERT INTO invoices VALUES (6, 'X-1', 1);
SELECT count(number) FROM invoices;
COMMIT;
SELECT id, number, amount FROM invoices ORDER BY id;
BEGIN;
INSERT INTO invoices VALUES (7);
ROLLBACK;
BEGIN;
INSERT INTO invoices VALUES (8);
SET CONSTRAINTS ALL IMMEDIATE;
SELECT number FROM invoices WHERE id = 8;
INSERT INTO invoices VALUES (9) RETURNING number;
SELECT number FROM invoices WHERE id = 9;
COMMIT;
SELECT * FROM snowflake_serial_gaps('invoices', 'number', 'invoice');
DO $$ BEGIN
    INSERT INTO invoices VALUES (10);
    BEGIN
        INSERT INTO invoices VALUES (11);
        RAISE EXCEPTION 'no';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    INSERT INTO invoices VALUES (12);
END $$;
SELECT id, number FROM invoices WHERE id > 9 ORDER BY id;

-- A column of dates determines the period. A row without a date is a draft.
SELECT snowflake_create_series('yearly', '{YYYY}/{n:3}', time_zone => 'Europe/Berlin');
CREATE TABLE bookings (id bigint PRIMARY KEY, "Number" varchar(10), booked date, paid timestamptz, receipt text);
SELECT snowflake_number_at_commit('bookings', 'Number', 'yearly', 'booked');
SELECT snowflake_number_at_commit('bookings', 'receipt', 'sales.yearly', date_key => 'paid');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'bookings'::regclass ORDER BY 1;
SET timezone = 'Asia/Tokyo';
INSERT INTO bookings VALUES (1, NULL, '2026-01-01', NULL), (2, NULL, '2025-12-31', NULL), (3, NULL, NULL, '2025-12-31 23:00Z');
SELECT id, "Number", receipt FROM bookings ORDER BY id;
UPDATE bookings SET booked = '2026-05-05' WHERE id = 3;
UPDATE bookings SET booked = '2026-06-06' WHERE id = 1;
UPDATE bookings SET paid = '2025-12-31 22:59:59Z' WHERE id = 1;
SELECT id, "Number", receipt FROM bookings ORDER BY id;
SET timezone = 'UTC';
-- A second call replaces the trigger of the same column.
SELECT snowflake_create_series('receipt', 'R{n:3}');
SELECT snowflake_number_at_commit('bookings', 'receipt', 'receipt');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'bookings'::regclass ORDER BY tgname;
INSERT INTO bookings VALUES (4);
SELECT "Number", receipt FROM bookings WHERE id = 4;

-- Partitions.
CREATE TABLE parts (id bigint, number text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10);
SELECT snowflake_create_series('part', 'P{n:3}');
SELECT snowflake_number_at_commit('parts', 'number', 'part');
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts VALUES (11), (1);
BEGIN;
INSERT INTO parts VALUES (2);
UPDATE parts SET id = 12 WHERE id = 2;
COMMIT;
SELECT tableoid::regclass, * FROM parts ORDER BY number;

-- A role that inserts rows needs no rights on the series, and none to update rows.
CREATE ROLE number_clerk;
GRANT INSERT (id, amount), SELECT ON invoices TO number_clerk;
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (20);
SELECT number FROM invoices WHERE id = 20;
UPDATE invoices SET number = 'mine';
\echo :SQLSTATE
SELECT current_user;
SELECT snowflake_number_at_commit('invoices', 'number', 'invoice');
\echo :SQLSTATE
RESET ROLE;
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;
ALTER TABLE invoices FORCE ROW LEVEL SECURITY;
CREATE POLICY clerks ON invoices TO number_clerk USING (true);
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (21);
SELECT number FROM invoices WHERE id = 21;
RESET ROLE;
ALTER TABLE invoices NO FORCE ROW LEVEL SECURITY;
ALTER TABLE invoices DISABLE ROW LEVEL SECURITY;

-- A role that can create triggers or schemas runs nothing as the owner of the table: a series of its own is refused, and the search path of
-- the session is not that of the update.
CREATE TABLE log (who name);
GRANT INSERT ON log TO number_clerk;
GRANT ALL ON invoices TO number_clerk;
GRANT CREATE ON SCHEMA sales TO number_clerk;
SET ROLE number_clerk;
SELECT snowflake_create_series('foreign_series', 'F{n:4}');
CREATE FUNCTION caught() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sales.log VALUES (current_user); RETURN NEW; END $$;
CREATE TRIGGER caught BEFORE INSERT ON foreign_series FOR EACH ROW EXECUTE FUNCTION caught();
GRANT ALL ON foreign_series TO PUBLIC;
CREATE TRIGGER mine AFTER INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION snowflake_number_row('number', 'sales.foreign_series');
INSERT INTO invoices (id) VALUES (22);
\echo :SQLSTATE
RESET ROLE;
DROP TRIGGER mine ON invoices;
SELECT snowflake_number_at_commit('invoices', 'number', 'foreign_series');
\echo :SQLSTATE
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.amount := length('four'); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE UPDATE ON invoices FOR EACH ROW EXECUTE FUNCTION stamp();
SET ROLE number_clerk;
CREATE FUNCTION length(text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sales.log VALUES (current_user); RETURN 0; END $$;
SET search_path = sales, pg_catalog, public;
SELECT length('four');
INSERT INTO invoices (id) VALUES (22);
SELECT amount, number FROM invoices WHERE id = 22;
RESET ROLE;
SELECT who FROM log;
SET search_path = sales, public;
DROP TRIGGER stamp ON invoices;
DELETE FROM invoices WHERE id = 22;
DROP TABLE foreign_series;
DROP FUNCTION sales.length(text), caught(), stamp();
REVOKE ALL ON invoices, log FROM number_clerk;
REVOKE CREATE ON SCHEMA sales FROM number_clerk;
GRANT INSERT (id, amount), SELECT ON invoices TO number_clerk;

-- An error at COMMIT undoes the transaction.
CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.amount = 0 THEN RETURN NULL; ELSIF NEW.amount = 1 THEN NEW.number := lower(NEW.number); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER skip BEFORE UPDATE ON invoices FOR EACH ROW EXECUTE FUNCTION skip();
INSERT INTO invoices (id, amount) VALUES (30, 0);
\echo :SQLSTATE
INSERT INTO invoices (id, amount) VALUES (30, 1);
INSERT INTO invoices (id, amount) VALUES (30, 2);
DROP TRIGGER skip ON invoices;
SELECT id, number FROM invoices WHERE id >= 30;
ALTER TABLE invoice RENAME TO renamed;
INSERT INTO invoices VALUES (31);
\echo :SQLSTATE
SELECT snowflake_number_at_commit('invoices', 'number', 'renamed');
INSERT INTO invoices VALUES (31);
ALTER TABLE invoices RENAME number TO serial;
INSERT INTO invoices VALUES (32);
\echo :SQLSTATE
DROP TRIGGER snowflake_number ON invoices;
SELECT snowflake_number_at_commit('invoices', 'serial', 'renamed');
INSERT INTO invoices VALUES (32);
DROP TABLE renamed;
INSERT INTO invoices VALUES (33);
\echo :SQLSTATE
SELECT id, serial FROM invoices WHERE id >= 30 ORDER BY id;

-- What cannot be numbered.
\set VERBOSITY terse
SELECT snowflake_number_at_commit(NULL, 'number', 'part');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('parts', NULL, 'part');
SELECT snowflake_number_at_commit('parts', 'number', NULL);
SELECT snowflake_number_at_commit('parts', 'nothing', 'part');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('parts', 'number', 'parts');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('parts', 'id', 'part');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('bookings', 'Number', 'part', 'nothing');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('bookings', 'Number', 'part', 'id');
\echo :SQLSTATE
SELECT snowflake_number_at_commit('bookings', repeat('x', 64), 'part');
\echo :SQLSTATE
SELECT snowflake_number_at_commit(123456789, 'number', 'part');
\echo :SQLSTATE
CREATE VIEW shown AS SELECT * FROM parts;
SELECT snowflake_number_at_commit('shown', 'number', 'part');
\echo :SQLSTATE
\set VERBOSITY default
SELECT snowflake_number_at_commit('shown', 'number', 'part');
SELECT snowflake_number_at_commit('bookings', 'Number', 'part', 'id');
SELECT snowflake_number_at_commit('parts', 'id', 'part');
SELECT snowflake_number_row();
\echo :SQLSTATE
CREATE TRIGGER wrong BEFORE INSERT ON parts_low FOR EACH ROW EXECUTE FUNCTION snowflake_number_row('number', 'part');
INSERT INTO parts VALUES (3);
\echo :SQLSTATE
DROP TRIGGER wrong ON parts_low;
CREATE TRIGGER wrong AFTER INSERT ON parts_low FOR EACH ROW EXECUTE FUNCTION snowflake_number_row('number');
INSERT INTO parts VALUES (3);
\echo :SQLSTATE
SET client_min_messages = warning;
DROP SCHEMA sales CASCADE;
DROP ROLE number_clerk;
