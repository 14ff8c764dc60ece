-- Counters, times and time zones that a series does not take.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT snowflake_create_series('short', 'S{YYYY}-{n:2}');
-- A day that is infinite is shown as what it is, like a time.
SELECT snowflake_serial('short', date 'infinity');
\echo :SQLSTATE
SELECT snowflake_serial('short', date '-infinity');
SELECT snowflake_serial('short', timestamptz 'infinity');
SELECT snowflake_serial('short', timestamptz '-infinity');
SELECT snowflake_serial('short', date '5874897-12-31');
SELECT snowflake_serial('short', date '4714-11-24 BC');
SELECT snowflake_serial('short', date '2026-12-31');

-- A counter above the template is refused when it is written.
INSERT INTO short VALUES ('2027', 100);
\echo :SQLSTATE
INSERT INTO short VALUES ('2027', 9223372036854775807);
UPDATE short SET last_number = 100 WHERE period = '2026';
\echo :SQLSTATE
UPDATE short SET last_number = 9223372036854775807 WHERE period = '2026';
-- The last number is one that fits. The next one raises the error of a series without numbers.
UPDATE short SET last_number = 98 WHERE period = '2026';
SELECT snowflake_serial('short', date '2026-12-31');
SELECT snowflake_serial('short', date '2026-12-31');
\echo :SQLSTATE
SELECT * FROM short;
-- The same numbers do not fit a narrower template.
SELECT snowflake_alter_series('short', template => 'T{YYYY}-{n:1}');
\echo :SQLSTATE
SELECT snowflake_alter_series('short', template => 'T{YYYY}-{n:3}');
SELECT snowflake_serial('short', date '2026-12-31');
SELECT snowflake_alter_series('short', template => 'U{YYYY}-{n:2}');
\echo :SQLSTATE
-- A narrower template that fits.
SELECT snowflake_create_series('wide', 'W{YYYY}-{n:5}');
SELECT snowflake_serial('wide', date '2026-12-31');
SELECT snowflake_alter_series('wide', template => 'X{YYYY}-{n:1}');
SELECT snowflake_serial('wide', date '2026-12-31');

-- A time zone is the same on every server.
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'localtime');
\echo :SQLSTATE
\set VERBOSITY terse
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'LocalTime');
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'posixrules');
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'Factory');
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'posix/Europe/Berlin');
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'right/Europe/Berlin');
SELECT snowflake_alter_series('short', time_zone => 'localtime');
-- The zone of the session is checked like an argument.
SET timezone = 'Factory';
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}');
RESET timezone;
SELECT snowflake_create_series('zoned', '{YYYY}-{n:2}', time_zone => 'America/New_York');
SELECT time_zone FROM snowflake_series WHERE series = 'zoned'::regclass;
DROP TABLE short, wide, zoned;
