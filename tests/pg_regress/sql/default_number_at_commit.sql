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
INSERT INTO invoices VALUES (6, NULL, 1);
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

-- Rows that move between partitions keep their numbers, one by one or all together. They cannot move to other numbers, or lose them.
UPDATE parts SET id = 3 WHERE id = 11;
UPDATE parts SET id = CASE WHEN id < 10 THEN id + 10 ELSE id - 10 END;
SELECT tableoid::regclass, * FROM parts ORDER BY number;
UPDATE parts SET id = 19, number = 'P009' WHERE number = 'P001';
\echo :SQLSTATE
UPDATE parts SET id = 1, number = NULL WHERE number = 'P001';
\echo :SQLSTATE
DELETE FROM parts WHERE number = 'P001' RETURNING number;
INSERT INTO parts VALUES (1, 'P001');
\echo :SQLSTATE

-- A table that numbers its own rows becomes a partition after its triggers are dropped.
CREATE TABLE parts_own (id bigint, number text);
SELECT snowflake_create_series('other_part', 'O{n:3}');
SELECT snowflake_number_at_commit('parts_own', 'number', 'other_part');
INSERT INTO parts_own VALUES (21);
ALTER TABLE parts ATTACH PARTITION parts_own FOR VALUES FROM (20) TO (30);
\echo :SQLSTATE
DROP TRIGGER snowflake_number ON parts_own;
DROP TRIGGER snowflake_number_keep ON parts_own;
-- A trigger with another name is found when it fires.
CREATE CONSTRAINT TRIGGER own_number AFTER INSERT OR UPDATE ON parts_own FROM other_part DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION snowflake_number_row('number');
ALTER TABLE parts ATTACH PARTITION parts_own FOR VALUES FROM (20) TO (30);
INSERT INTO parts VALUES (22);
\echo :SQLSTATE
SELECT snowflake_number_at_commit('parts', 'number', 'part');
\echo :SQLSTATE
DROP TRIGGER own_number ON parts_own;
SELECT snowflake_number_at_commit('parts', 'number', 'part');
INSERT INTO parts VALUES (22);
SELECT tableoid::regclass, * FROM parts ORDER BY number;
-- A series for each partition.
CREATE TABLE branches (branch text, id bigint, number text) PARTITION BY LIST (branch);
CREATE TABLE branches_north PARTITION OF branches FOR VALUES IN ('north');
CREATE TABLE branches_south PARTITION OF branches FOR VALUES IN ('south');
SELECT snowflake_create_series('north', 'N{n:3}'), snowflake_create_series('south', 'S{n:3}');
SELECT snowflake_number_at_commit('branches_north', 'number', 'north'), snowflake_number_at_commit('branches_south', 'number', 'south');
INSERT INTO branches VALUES ('north', 1), ('south', 2), ('north', 3);
UPDATE branches SET branch = 'south' WHERE id = 1;
\echo :SQLSTATE
SELECT * FROM branches ORDER BY id;

-- A role that inserts rows needs no rights on the series. It can read the table, and update the column of the number.
CREATE ROLE number_clerk;
GRANT SELECT, INSERT (id, amount) ON invoices TO number_clerk;
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (20);
\echo :SQLSTATE
RESET ROLE;
GRANT UPDATE (number) ON invoices TO number_clerk;
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (20);
SELECT number FROM invoices WHERE id = 20;
SELECT current_user;
SELECT snowflake_number_at_commit('invoices', 'number', 'invoice');
\echo :SQLSTATE
RESET ROLE;
-- The role owns a table, but needs the privilege TRIGGER on the series.
GRANT CREATE ON SCHEMA sales TO number_clerk;
SET ROLE number_clerk;
CREATE TABLE clerks (id integer, number text);
SELECT snowflake_number_at_commit('clerks', 'number', 'invoice');
\echo :SQLSTATE
RESET ROLE;
GRANT TRIGGER ON invoice TO number_clerk;
SET ROLE number_clerk;
SELECT snowflake_number_at_commit('clerks', 'number', 'invoice');
INSERT INTO clerks VALUES (1);
SELECT number FROM clerks;
RESET ROLE;
DROP TABLE clerks;
REVOKE TRIGGER ON invoice FROM number_clerk;
-- Policies apply to the role that writes. A row that the role cannot see is not left without a number.
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;
ALTER TABLE invoices FORCE ROW LEVEL SECURITY;
CREATE POLICY clerks ON invoices TO number_clerk USING (true);
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (21);
SELECT number FROM invoices WHERE id = 21;
RESET ROLE;
ALTER POLICY clerks ON invoices USING (id < 22) WITH CHECK (true);
SET ROLE number_clerk;
INSERT INTO invoices (id) VALUES (22);
\echo :SQLSTATE
RESET ROLE;
ALTER TABLE invoices NO FORCE ROW LEVEL SECURITY;
ALTER TABLE invoices DISABLE ROW LEVEL SECURITY;

-- Only the numbering writes numbers. A statement that changes other columns leaves them as they are.
INSERT INTO invoices VALUES (40, 'INV-0030');
\echo :SQLSTATE
COPY invoices FROM STDIN;
40	INV-0030	1
\.
\echo :SQLSTATE
UPDATE invoices SET number = 'INV-0030' WHERE id = 20;
\echo :SQLSTATE
UPDATE invoices SET number = NULL WHERE id = 20;
\echo :SQLSTATE
BEGIN;
INSERT INTO invoices VALUES (40);
UPDATE invoices SET number = 'INV-0030' WHERE id = 40;
ROLLBACK;
INSERT INTO invoices VALUES (20, NULL, 5) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount;
INSERT INTO invoices VALUES (20) ON CONFLICT (id) DO UPDATE SET number = excluded.number;
\echo :SQLSTATE
MERGE INTO invoices USING (VALUES (20, 7), (41, 8)) AS v (id, amount) ON invoices.id = v.id
    WHEN MATCHED THEN UPDATE SET amount = v.amount, number = invoices.number
    WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (v.id, v.amount);
SELECT id, number, amount FROM invoices WHERE id IN (20, 41) ORDER BY id;
-- The owner can import numbers.
ALTER TABLE invoices DISABLE TRIGGER snowflake_number_keep;
INSERT INTO invoices VALUES (42, 'OLD-7');
ALTER TABLE invoices ENABLE TRIGGER snowflake_number_keep;
-- A trigger that the update fires cannot write another number either, and a row that it inserts gets its own.
CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.amount = 1 THEN UPDATE invoices SET number = NEW.number WHERE id = 42;
    ELSIF NEW.amount = 2 THEN INSERT INTO invoices (id) VALUES (NEW.id + 1);
    ELSIF NEW.amount = 3 THEN
        BEGIN
            UPDATE invoices SET number = 'INV-0099' WHERE id = 42;
        EXCEPTION WHEN generated_always THEN NULL;
        END;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER forge BEFORE UPDATE ON invoices FOR EACH ROW EXECUTE FUNCTION forge();
INSERT INTO invoices (id, amount) VALUES (43, 1);
\echo :SQLSTATE
INSERT INTO invoices (id, amount) VALUES (43, 2), (45, 3);
SELECT id, number, amount FROM invoices WHERE id > 41 ORDER BY id;
DROP TRIGGER forge ON invoices;
DROP FUNCTION forge();
DELETE FROM invoices WHERE id > 40;

-- What keeps a series from numbering rows: code of others could run with the rights of its owner.
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE DOMAIN checked AS bigint CHECK (value > 0);
DO $$
DECLARE
    change text;
    said text;
BEGIN
    FOREACH change IN ARRAY ARRAY[
        'CREATE TRIGGER other BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION nothing()',
        'CREATE TRIGGER other AFTER INSERT ON invoice
             FOR EACH ROW EXECUTE FUNCTION snowflake_series_row(''{n:3}'', ''gapless'', ''UTC'', ''1'')',
        'CREATE RULE other AS ON DELETE TO invoice DO NOTHING',
        'ALTER TABLE invoice ENABLE ROW LEVEL SECURITY',
        'ALTER TABLE invoice ADD CHECK (last_number > 0)',
        'ALTER TABLE invoice ALTER last_number SET DEFAULT 7',
        'ALTER TABLE invoice ADD note text',
        'ALTER TABLE invoice ALTER last_number TYPE checked',
        'CREATE INDEX ON invoice (last_number)',
        'ALTER TABLE invoice DROP CONSTRAINT invoice_pkey',
        'ALTER TABLE invoice ADD note text; ALTER TABLE invoice DROP note; CREATE TABLE refers (period text REFERENCES invoice)'
    ] LOOP
        BEGIN
            EXECUTE change;
            SET CONSTRAINTS ALL IMMEDIATE;
            INSERT INTO invoices VALUES (50);
            RAISE division_by_zero USING MESSAGE = 'numbered';
        EXCEPTION WHEN object_not_in_prerequisite_state OR division_by_zero THEN
            GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
            RAISE NOTICE '%: %', sqlerrm, said;
        END;
    END LOOP;
END $$;
DROP FUNCTION nothing();

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
-- The trigger follows a series that is renamed or moved.
CREATE SCHEMA moved;
ALTER TABLE invoice RENAME TO renamed;
ALTER TABLE renamed SET SCHEMA moved;
INSERT INTO invoices VALUES (31);
SELECT id, number FROM invoices WHERE id = 31;
ALTER TABLE invoices RENAME number TO serial;
INSERT INTO invoices VALUES (32);
\echo :SQLSTATE
SELECT snowflake_number_at_commit('invoices', 'serial', 'moved.renamed');
INSERT INTO invoices VALUES (32);
-- PostgreSQL drops the trigger with the series. Rows do not stay without a number silently.
DROP TABLE moved.renamed;
INSERT INTO invoices VALUES (33);
\echo :SQLSTATE
UPDATE invoices SET amount = 3 WHERE id = 30;
DROP TRIGGER snowflake_number_keep ON invoices;
INSERT INTO invoices VALUES (33);
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
DROP TRIGGER wrong ON parts_low;
CREATE TRIGGER wrong BEFORE INSERT ON parts_low FOR EACH ROW EXECUTE FUNCTION snowflake_number_keep('number');
INSERT INTO parts VALUES (3);
\echo :SQLSTATE
SELECT snowflake_number_keep();
\echo :SQLSTATE
SET client_min_messages = warning;
DROP SCHEMA sales, moved CASCADE;
DROP ROLE number_clerk;
