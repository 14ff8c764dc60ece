-- Serials: series, their numbers, periods, rights, and errors. What other sessions do is in tests/serial.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA books;
GRANT USAGE ON SCHEMA books TO PUBLIC;
SET search_path = books, public;

-- A series is a table. Its definition is in the view.
SELECT snowflake_create_series('invoice', 'INV-{YYYY}-{n:5}', time_zone => 'europe/berlin');
SELECT snowflake_create_series('books."Daily Order"', 'ORD-{YYYY}{MM}{DD}-{n:2}', 'gapless', 'America/New_York', 7);
SELECT snowflake_create_series('ticket', 'T{n:3}', start => 0);
SELECT snowflake_create_series('"hour"', '{YY}{MM}{DD}{HH}{n:1}', time_zone => 'Europe/Berlin');
SELECT * FROM snowflake_series;
SELECT attname, atttypid::regtype, attnotnull FROM pg_attribute WHERE attrelid = 'invoice'::regclass AND attnum > 0;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'invoice'::regclass ORDER BY 1;

-- Numbers of a period, in the time zone of the series.
SELECT snowflake_serial('invoice', '2026-11-22 12:00Z') FROM generate_series(1, 3);
SELECT snowflake_serial('invoice', '2025-12-31 22:59:59.999999Z'), snowflake_serial('invoice', '2025-12-31 23:00Z');
SELECT snowflake_serial('"Daily Order"', '2026-07-01 03:59Z'), snowflake_serial('"Daily Order"', '2026-07-01 04:00Z');
SELECT snowflake_serial('ticket', '9999-01-01Z'), snowflake_serial('ticket', '0001-01-01Z BC'), snowflake_serial('ticket');
-- The hour that comes twice, and the hour that is skipped.
SELECT snowflake_serial('hour', at)
  FROM unnest('{2026-10-25 00:59Z,2026-10-25 01:00Z,2026-10-25 02:00Z,2026-03-29 00:59Z,2026-03-29 01:00Z}'::timestamptz[]) AS at;
-- A date is a day of the calendar in any time zone.
SET timezone = 'Asia/Tokyo';
SELECT snowflake_serial('invoice', date '2027-01-01'), snowflake_serial('invoice', timestamptz '2027-01-01');
SELECT snowflake_serial('"Daily Order"', date '2027-01-01');
SET timezone = 'UTC';
SELECT * FROM invoice ORDER BY period;
SELECT snowflake_serial(NULL) IS NULL AS no_series, snowflake_serial('invoice', NULL::timestamptz) IS NULL AS no_time;
-- The period of now, as a default.
CREATE TABLE orders (number text PRIMARY KEY DEFAULT snowflake_serial('ticket'), amount integer);
INSERT INTO orders (amount) VALUES (1), (2) RETURNING number;
BEGIN;
INSERT INTO orders (amount) VALUES (3) RETURNING number;
SAVEPOINT s;
INSERT INTO orders (amount) VALUES (4) RETURNING number;
ROLLBACK TO s;
INSERT INTO orders (amount) VALUES (5) RETURNING number;
ROLLBACK;
INSERT INTO orders (amount) VALUES (6) RETURNING number;
-- The default belongs to the table, whatever its name is.
ALTER TABLE ticket RENAME TO voucher;
CREATE SCHEMA moved;
ALTER TABLE voucher SET SCHEMA moved;
INSERT INTO orders (amount) VALUES (7) RETURNING number;
DROP TABLE moved.voucher;
\echo :SQLSTATE
-- A default takes a number even if the row is not inserted.
ALTER TABLE orders ADD UNIQUE (amount);
INSERT INTO orders (amount) VALUES (7) ON CONFLICT DO NOTHING;
SELECT * FROM snowflake_serial_gaps('orders', 'number', 'moved.voucher');

-- Each serial is read back.
SELECT * FROM snowflake_serial_parse('invoice', 'INV-2026-00042');
SELECT * FROM snowflake_serial_parse('hour', '26102502' || '9');
SELECT p.* FROM orders AS o, snowflake_serial_parse('moved.voucher', o.number) AS p ORDER BY number;
SELECT count(*) FROM generate_series(timestamptz '2000-01-01Z', '2099-12-31Z', '37 days') AS at,
       snowflake_serial_parse('hour', snowflake_serial('hour', at)) AS p
 WHERE p.period <> to_char(at AT TIME ZONE 'Europe/Berlin', 'YYYY-MM-DD HH24') OR p.number <> 1;
\set VERBOSITY terse
SELECT snowflake_serial_parse('invoice', 'INV-2026-0042');
\echo :SQLSTATE
SELECT snowflake_serial_parse('invoice', 'RE-2026-000042');
SELECT snowflake_serial_parse('"Daily Order"', 'ORD-20270229-01');
\set VERBOSITY default
SELECT snowflake_serial_parse('"Daily Order"', 'ORD-20270229-01');
SELECT snowflake_serial_parse('invoice', repeat('é', 100));
\echo :SQLSTATE

-- A number that outgrows its width.
SELECT snowflake_serial('"Daily Order"', date '2027-01-02') FROM generate_series(1, 93) OFFSET 92;
SELECT snowflake_serial('"Daily Order"', date '2027-01-02');
\echo :SQLSTATE
SELECT last_number FROM "Daily Order" WHERE period = '2027-01-02';
SELECT snowflake_alter_series('"Daily Order"', template => 'ORD-{YYYY}{MM}{DD}-{n:3}');
SELECT snowflake_serial('"Daily Order"', date '2027-01-02');
-- Years that the template cannot represent.
SELECT snowflake_serial('hour', '1999-12-31 22:59Z');
\echo :SQLSTATE
SELECT snowflake_serial('hour', '1999-12-31 23:00Z');
SELECT snowflake_serial('invoice', 'infinity');
\echo :SQLSTATE
SELECT snowflake_serial('invoice', date '-infinity');
SELECT snowflake_serial('invoice', '0001-01-01 BC');
SELECT snowflake_serial('hour', date '2026-01-01');
\echo :SQLSTATE

-- What can be altered.
SELECT snowflake_alter_series('invoice', template => 'RE-{YYYY}-{n:4}', time_zone => 'UTC', start => 1);
SELECT snowflake_alter_series('invoice', start => 100);
\echo :SQLSTATE
INSERT INTO invoice VALUES ('2040', 99);
SELECT snowflake_serial('invoice', '2040-01-01Z');
SELECT snowflake_serial('invoice', '2026-12-31 23:30Z'), snowflake_serial('invoice', '2030-01-01Z');
SELECT * FROM snowflake_series WHERE series = 'invoice'::regclass;
SELECT snowflake_alter_series('invoice', template => 'RE-{YYYY}{MM}-{n:4}');
\echo :SQLSTATE
SELECT snowflake_alter_series('invoice', template => 'RE-{n:4}-{YYYY}');
\echo :SQLSTATE
SELECT snowflake_alter_series('invoice', template => 'R{n:1}');
\set VERBOSITY terse
SELECT snowflake_alter_series('invoice', start => 10000);
\echo :SQLSTATE
SELECT snowflake_alter_series('invoice', time_zone => 'Europe/Berli');
\echo :SQLSTATE
SELECT snowflake_alter_series('invoice', template => '{n:3}{');
\echo :SQLSTATE
SELECT snowflake_alter_series(NULL);
\echo :SQLSTATE
SELECT snowflake_alter_series('orders');
\echo :SQLSTATE
SELECT snowflake_alter_series('invoice');
-- A series without numbers can become any other.
SELECT snowflake_create_series('fresh', 'A{n:1}');
SELECT snowflake_alter_series('fresh', template => '{YYYY}{n:9}', start => 50);
SELECT snowflake_serial('fresh', date '2026-01-01');

-- What cannot be created.
\set VERBOSITY default
SELECT snowflake_create_series('invoice', '{n:3}');
\echo :SQLSTATE
SELECT snowflake_create_series('nowhere.invoice', '{n:3}');
\echo :SQLSTATE
SELECT snowflake_create_series('a.b.c', '{n:3}');
\echo :SQLSTATE
SELECT snowflake_create_series('a b', '{n:3}');
\echo :SQLSTATE
SELECT snowflake_create_series(repeat('x', 1000), '{n:3}');
\echo :SQLSTATE
SELECT snowflake_create_series('other', 'INV-{YYYY}');
\echo :SQLSTATE
SELECT snowflake_create_series('other', '{n:5}', 'fast');
\echo :SQLSTATE
SELECT snowflake_create_series('other', '{n:5}', time_zone => 'CET-1CEST');
\echo :SQLSTATE
SELECT snowflake_create_series('other', '{n:5}', time_zone => repeat('é', 1000));
\echo :SQLSTATE
SELECT snowflake_create_series('other', '{n:5}', start => 100000);
\echo :SQLSTATE
\set VERBOSITY terse
SELECT snowflake_create_series('other', '{n:5}', start => -1);
SELECT snowflake_create_series('other', '{n:0}');
SELECT snowflake_create_series('other', repeat('x', 200));
SELECT snowflake_create_series(NULL, '{n:5}');
\echo :SQLSTATE
SELECT snowflake_create_series('other', NULL);
SELECT snowflake_create_series('other', '{n:5}', NULL);
SELECT snowflake_create_series('other', '{n:5}', start => NULL);
SET search_path = '';
SELECT public.snowflake_create_series('other', '{n:5}');
\echo :SQLSTATE
SET search_path = books, public;
\set VERBOSITY default
SELECT snowflake_create_series('other', '{DD}{n:5}');
SELECT snowflake_create_series('other', '{n:5}{n:5}');
SELECT snowflake_create_series('other', 'A}{n:5}');
SELECT snowflake_serial('orders');
\echo :SQLSTATE
SELECT snowflake_serial(123456789);
\echo :SQLSTATE
SELECT snowflake_serial('nowhere');
\echo :SQLSTATE

-- The trigger keeps the counters.
INSERT INTO invoice VALUES ('2031', 4711);
SELECT snowflake_serial('invoice', '2031-05-05Z');
UPDATE invoice SET last_number = last_number - 1 WHERE period = '2031';
\echo :SQLSTATE
UPDATE invoice SET period = '2032' WHERE period = '2031';
\echo :SQLSTATE
DELETE FROM invoice WHERE period = '2031';
\echo :SQLSTATE
TRUNCATE invoice;
\echo :SQLSTATE
INSERT INTO invoice VALUES ('31', 1);
\echo :SQLSTATE
INSERT INTO invoice VALUES ('2033', -1);
\echo :SQLSTATE
INSERT INTO invoice VALUES (NULL, 1);
\echo :SQLSTATE
INSERT INTO invoice VALUES ('2033');
\echo :SQLSTATE
SELECT snowflake_series_row();
\echo :SQLSTATE
CREATE TRIGGER wrong AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION snowflake_series_row();
INSERT INTO orders (amount) VALUES (8);
\echo :SQLSTATE
DROP TRIGGER wrong ON orders;
CREATE TRIGGER wrong BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('{n:3}', 'gapless', 'UTC', '1');
INSERT INTO orders (amount) VALUES (8);
\echo :SQLSTATE
DROP TRIGGER wrong ON orders;
CREATE TABLE odd (period text PRIMARY KEY, last_number bigint);
CREATE TRIGGER snowflake_series AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('{n:3}', 'gapless', 'UTC');
INSERT INTO odd VALUES ('', 1);
\echo :SQLSTATE
SELECT snowflake_serial('odd');
\echo :SQLSTATE
DROP TABLE odd;
-- Columns of other types.
CREATE TABLE odd (period text PRIMARY KEY, last_number float8);
CREATE TRIGGER snowflake_series AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('{n:3}', 'gapless', 'UTC', '1');
SELECT snowflake_serial('odd');
\echo :SQLSTATE
ALTER TABLE odd ALTER last_number TYPE bigint;
SELECT snowflake_serial('odd');
DROP TABLE odd;
-- A temporary series.
SELECT snowflake_create_series('pg_temp.brief', 'B{n:3}');
SELECT snowflake_serial('pg_temp.brief');
SELECT snowflake_create_series('pg_temp.brief', 'B{n:3}');
\echo :SQLSTATE
DROP TABLE pg_temp.brief;

-- Gaps: numbers that the series has issued and the table lacks.
SELECT snowflake_create_series('receipt', 'R{YY}{MM}-{n:4}', time_zone => 'UTC');
CREATE TABLE receipts (id bigint PRIMARY KEY, number varchar(20) UNIQUE);
INSERT INTO receipts
    SELECT n, snowflake_serial('receipt', timestamptz '2026-01-15Z' + n % 2 * interval '1 month') FROM generate_series(1, 40) AS n;
SELECT * FROM snowflake_serial_gaps('receipts', 'number', 'receipt');
DELETE FROM receipts WHERE number IN ('R2601-0001', 'R2601-0003', 'R2601-0004', 'R2602-0019', 'R2602-0020');
INSERT INTO receipts VALUES (50, NULL), (51, 'something'), (52, 'R2602-0050'), (53, 'R2603-0002');
SELECT * FROM snowflake_serial_gaps('receipts', 'number', 'receipt');
SELECT * FROM snowflake_serial_gaps('receipts', key => 'number', series => 'receipt') WHERE period = '2026-02';
SELECT snowflake_serial_gaps(NULL, 'number', 'receipt');
\echo :SQLSTATE
\set VERBOSITY terse
SELECT snowflake_serial_gaps('receipts', NULL, 'receipt');
SELECT snowflake_serial_gaps('receipts', 'number', NULL);
SELECT snowflake_serial_gaps('receipts', 'nothing', 'receipt');
\echo :SQLSTATE
SELECT snowflake_serial_gaps('receipts', repeat('x', 64), 'receipt');
\echo :SQLSTATE
SELECT snowflake_serial_gaps('receipts', 'number', 'receipts');
\echo :SQLSTATE
CREATE TYPE composed AS (number text);
CREATE TABLE compositions (number composed);
SELECT snowflake_serial_gaps('compositions', 'number', 'receipt');
\echo :SQLSTATE
CREATE VIEW seen AS SELECT ''::text AS period, 1::bigint AS last_number;
CREATE TRIGGER seen INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('{n:3}', 'gapless', 'UTC', '1');
SELECT snowflake_serial_gaps('receipts', 'number', 'seen');
\echo :SQLSTATE
SELECT series FROM snowflake_series WHERE series::text = 'seen';
CREATE TABLE halves (number text);
INSERT INTO halves SELECT 'H' || to_char(n * 2, 'FM0000000') FROM generate_series(1, 100002) AS n;
SELECT snowflake_create_series('half', 'H{n:7}');
INSERT INTO half VALUES ('', 200010);
SELECT count(*) FROM snowflake_serial_gaps('halves', 'number', 'half');
\echo :SQLSTATE
DELETE FROM halves WHERE number > 'H0199998';
SELECT count(*), sum(last_number - first_number + 1) FROM snowflake_serial_gaps('halves', 'number', 'half');

-- An event trigger renames the table.
CREATE FUNCTION rename() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN ALTER TABLE named RENAME TO renamed; END';
CREATE EVENT TRIGGER rename ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION rename();
SELECT snowflake_create_series('named', '{n:3}');
\echo :SQLSTATE
DROP EVENT TRIGGER rename;

-- Rights are those of a table.
\set VERBOSITY default
CREATE ROLE serial_clerk;
CREATE ROLE serial_auditor;
GRANT SELECT ON receipts TO serial_clerk, serial_auditor;
SET ROLE serial_clerk;
SELECT snowflake_serial('receipt');
\echo :SQLSTATE
SELECT count(*) FROM snowflake_series;
SELECT snowflake_alter_series('receipt', start => 2);
\echo :SQLSTATE
SELECT snowflake_create_series('books.mine', '{n:3}');
\echo :SQLSTATE
SELECT number FROM snowflake_serial_parse('receipt', 'R2601-0009');
RESET ROLE;
GRANT SELECT, INSERT ON receipt TO serial_clerk;
SET ROLE serial_clerk;
SELECT snowflake_serial('receipt');
\echo :SQLSTATE
RESET ROLE;
GRANT UPDATE ON receipt TO serial_clerk;
SET ROLE serial_clerk;
SELECT snowflake_serial('receipt', '2026-01-01Z');
SELECT series, template FROM snowflake_series;
-- The role can take the next number, and nothing else.
UPDATE receipt SET last_number = last_number + 1 WHERE period = '2026-01';
UPDATE receipt SET last_number = last_number + 2 WHERE period = '2026-01';
\echo :SQLSTATE
UPDATE receipt SET last_number = last_number WHERE period = '2026-01';
\echo :SQLSTATE
INSERT INTO receipt VALUES ('2040-01', 2);
\echo :SQLSTATE
INSERT INTO receipt VALUES ('2040-01', 1);
SELECT snowflake_serial('receipt', '2040-01-01Z');
RESET ROLE;
UPDATE receipt SET last_number = 100 WHERE period = '2040-01';
INSERT INTO receipt VALUES ('2041-01', 9999);
SET ROLE serial_clerk;
UPDATE receipt SET last_number = last_number WHERE period = '2041-01';
SET ROLE serial_auditor;
SELECT snowflake_serial_gaps('receipts', 'number', 'receipt');
\echo :SQLSTATE
RESET ROLE;
GRANT SELECT ON receipt TO serial_auditor;
ALTER TABLE receipts ENABLE ROW LEVEL SECURITY;
SET ROLE serial_auditor;
SELECT snowflake_serial_gaps('receipts', 'number', 'receipt');
\echo :SQLSTATE
RESET ROLE;
ALTER TABLE receipts DISABLE ROW LEVEL SECURITY;
SET ROLE serial_auditor;
SELECT * FROM snowflake_serial_gaps('receipts', 'number', 'receipt');
RESET ROLE;

BEGIN READ ONLY;
SELECT snowflake_serial('receipt');
\echo :SQLSTATE
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA books CASCADE;
DROP SCHEMA moved CASCADE;
DROP ROLE serial_clerk, serial_auditor;

-- A trigger that draws from more series than a session keeps plans for.
DO $$ BEGIN PERFORM snowflake_create_series('many_' || n, '{n:3}') FROM generate_series(1, 70) AS n; END $$;
CREATE FUNCTION draw_from_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_serial(('many_' || n)::regclass) FROM generate_series(2, 70) AS n;
    RETURN NEW;
END
$$;
CREATE TRIGGER draw_from_all BEFORE INSERT ON many_1 FOR EACH ROW EXECUTE FUNCTION draw_from_all();
SELECT snowflake_serial('many_1'), snowflake_serial('many_1'), snowflake_serial('many_70');
