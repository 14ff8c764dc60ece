-- IDs as text: 13 characters of Crockford's base 32.
SELECT id, snowflake_to_text(id), snowflake_from_text(snowflake_to_text(id)) = id AS again
  FROM (VALUES (0), (1), (31), (32), (1541815603606036480), (9007199254740993), (9223372036854775807)) AS v (id);
SELECT pg_typeof(snowflake_to_text(1)), pg_typeof(snowflake_from_text('0000000000001')), octet_length(snowflake_to_text(1));
-- Lower case and look-alikes.
SELECT text, snowflake_from_text(text)
  FROM (VALUES ('1AZ1AMFWC0000'), ('1az1amfwc0000'), ('LaZiaMfWcoOOo'), ('IAZLAMFWC0O0o')) AS v (text);
SELECT snowflake_to_text(NULL) IS NULL AS no_text, snowflake_from_text(NULL) IS NULL AS no_id;
-- A column of this type sorts like the numbers, and takes each in one spelling.
CREATE TABLE links (id snowflake_text PRIMARY KEY, number bigint GENERATED ALWAYS AS (snowflake_from_text(id)) STORED);
INSERT INTO links SELECT snowflake_to_text(n * 922337203685477) FROM generate_series(1, 1000) AS n;
SELECT count(*) FROM (SELECT number > lag(number) OVER (ORDER BY id) AS later FROM links) AS pairs WHERE later;
SELECT collation_name FROM information_schema.domains WHERE domain_name = 'snowflake_text';
INSERT INTO links VALUES ('1asd13xh1f800');
INSERT INTO links VALUES ('garbage');
INSERT INTO links VALUES ('8000000000000');
SELECT 'ZZZ'::snowflake_text;
DROP TABLE links;

-- Refused, with position and reason.
SELECT snowflake_from_text('');
\echo :SQLSTATE
SELECT snowflake_from_text('000000000000');
\echo :SQLSTATE
SELECT snowflake_from_text('00000000000000');
\echo :SQLSTATE
SELECT snowflake_from_text('1541815603606036480');
\echo :SQLSTATE
SELECT snowflake_from_text('0000000000000x');
\echo :SQLSTATE
SELECT snowflake_from_text('00000000000000000000');
\echo :SQLSTATE
SELECT snowflake_from_text(' 0000000000000');
\echo :SQLSTATE
SELECT snowflake_from_text('0000000000000 ');
\echo :SQLSTATE
SELECT snowflake_from_text('000-000000000');
\echo :SQLSTATE
SELECT snowflake_from_text('000000U000000');
\echo :SQLSTATE
SELECT snowflake_from_text('000000000000é');
\echo :SQLSTATE
SELECT snowflake_from_text(E'00\n0000000000');
\echo :SQLSTATE
SELECT snowflake_from_text('8000000000000');
\echo :SQLSTATE
SELECT snowflake_from_text(repeat('0', 100));
\echo :SQLSTATE
SELECT snowflake_to_text(-1);
\echo :SQLSTATE
SELECT snowflake_to_text('-9223372036854775808');
\echo :SQLSTATE
