-- Concealed IDs: positive numbers that show neither a time nor a server, and that a key reveals again.
\set key '\'\\x000102030405060708090a0b0c0d0e0f\''

-- These numbers never change.
SELECT id, snowflake_conceal(id, :key), snowflake_conceal_text(id, :key),
       snowflake_reveal(snowflake_conceal(id, :key), :key) = id AS again,
       snowflake_reveal_text(snowflake_conceal_text(id, :key), :key) = id AS again_text
  FROM (VALUES (0), (1), (1541815603606036481), (1541815603606036482), (9223372036854775807)) AS v (id);
-- With keys of 24 and 32 bytes, and with tweaks.
SELECT snowflake_conceal(1541815603606036480, '\x000102030405060708090a0b0c0d0e0f1011121314151617') AS aes_192,
       snowflake_conceal(1541815603606036480, '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f') AS aes_256;
SELECT tweak, snowflake_conceal(1541815603606036481, :key, tweak), snowflake_conceal_text(1541815603606036481, :key, tweak => tweak)
  FROM (VALUES (''::bytea), ('orders'), ('\x000102030405060708090a0b')) AS v (tweak);
SELECT pg_typeof(snowflake_conceal(1, :key)), pg_typeof(snowflake_reveal(1, :key)),
       pg_typeof(snowflake_conceal_text(1, :key)), pg_typeof(snowflake_reveal_text('0000000000001', :key));
-- The default of the tweak is an empty one.
SELECT snowflake_conceal(7, :key) = snowflake_conceal(7, :key, '') AS same,
       snowflake_conceal_text(7, :key) = snowflake_to_text(snowflake_conceal(7, :key)) AS same_text,
       snowflake_reveal_text(lower(snowflake_conceal_text(7, :key)), :key) AS lower_case;
-- Another key, and another tweak.
SELECT snowflake_reveal(snowflake_conceal(7, :key), sha256('another')) = 7 AS revealed_by_another_key,
       snowflake_reveal(snowflake_conceal(7, :key, 'orders'), :key, 'invoices') = 7 AS revealed_by_another_tweak;
SELECT snowflake_conceal(NULL, :key) IS NULL AS no_id, snowflake_conceal(1, NULL) IS NULL AS no_key,
       snowflake_conceal(1, :key, NULL) IS NULL AS no_tweak, snowflake_reveal(1, NULL) IS NULL AS no_key_to_reveal,
       snowflake_conceal_text(1, NULL) IS NULL AS no_text, snowflake_reveal_text(NULL, :key) IS NULL AS nothing_to_reveal;

-- No two IDs have the same concealed ID, and each is found again.
SELECT count(*), count(DISTINCT concealed), min(concealed) > 0 AS positive, bool_and(snowflake_reveal(concealed, :key) = id) AS again
  FROM (SELECT id, snowflake_conceal(id, :key) AS concealed FROM generate_series(1541815603606036480, 1541815603606046479) AS id) AS ids;

-- A generated column, and an index that finds rows by it and by the expression.
CREATE TABLE shown (
    id bigint PRIMARY KEY,
    public_id text COLLATE "C" GENERATED ALWAYS AS (snowflake_conceal_text(id, '\x000102030405060708090a0b0c0d0e0f')) STORED UNIQUE);
INSERT INTO shown SELECT 1541815603606036480 + n FROM generate_series(0, 9999) AS n;
CREATE INDEX shown_concealed ON shown (snowflake_conceal(id, '\x000102030405060708090a0b0c0d0e0f', 'shown'));
ANALYZE shown;
SELECT public_id FROM shown WHERE id = 1541815603606036482;
EXPLAIN (COSTS OFF) SELECT id FROM shown WHERE public_id = '406SJ2F150MD6';
EXPLAIN (COSTS OFF) SELECT id FROM shown
  WHERE snowflake_conceal(id, '\x000102030405060708090a0b0c0d0e0f', 'shown') = 7;
SELECT id FROM shown WHERE snowflake_conceal(id, '\x000102030405060708090a0b0c0d0e0f', 'shown')
  = (SELECT snowflake_conceal(1541815603606036487, :key, 'shown'));
-- Without an index of its own, a concealed ID is revealed once, and the primary key finds the row.
EXPLAIN (COSTS OFF) SELECT id FROM shown WHERE id = snowflake_reveal_text('0000000000001', :key);
SELECT id FROM shown WHERE id = snowflake_reveal_text(snowflake_conceal_text(1541815603606036487, :key), :key);
-- A call costs more than a sort or another condition, so the planner calls the functions for as few rows as possible.
SELECT proname, procost FROM pg_proc WHERE proname ~ '^snowflake_(conceal|reveal)' ORDER BY proname COLLATE "C";
EXPLAIN (VERBOSE, COSTS OFF) SELECT snowflake_conceal(id, 'secret_secret_se') FROM shown ORDER BY id % 7, id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM shown WHERE snowflake_reveal(id, 'secret_secret_se') > 7 AND id % 7 = 0;
DROP TABLE shown;

-- Refused. No message shows the key.
SELECT snowflake_conceal(1, '');
\echo :SQLSTATE
SELECT snowflake_conceal(1, 'secret_secret_secre');
\echo :SQLSTATE
SELECT snowflake_reveal(1, 'secret_secret_secret_secret_secret');
\echo :SQLSTATE
SELECT snowflake_conceal_text(1, 'secret_secret_s');
\echo :SQLSTATE
SELECT snowflake_reveal_text('0000000000001', 'secret_secret_sec');
\echo :SQLSTATE
SELECT snowflake_conceal(1, :key, sha256('') || repeat('0', 993)::bytea);
\echo :SQLSTATE
SELECT snowflake_reveal(snowflake_conceal(1, :key, repeat('0', 1024)::bytea), :key, repeat('0', 1024)::bytea);
SELECT snowflake_conceal(-1, :key);
\echo :SQLSTATE
SELECT snowflake_conceal_text('-9223372036854775808', :key);
\echo :SQLSTATE
SELECT snowflake_reveal(-1, :key);
\echo :SQLSTATE
SELECT snowflake_reveal_text('8000000000000', :key);
\echo :SQLSTATE
SELECT snowflake_reveal_text('garbage', :key);
\echo :SQLSTATE
-- A key as hexadecimal digits that were passed as text would be another key. What the hint says works.
SELECT snowflake_conceal(1, '000102030405060708090a0b0c0d0e0f');
\echo :SQLSTATE
SELECT snowflake_reveal(1, '0123456789ABCDEF');
\echo :SQLSTATE
SELECT snowflake_conceal_text(1, '0123456789abcdefABCDEF01');
\echo :SQLSTATE
SELECT snowflake_reveal_text('0000000000001', '00000000000000000000000000000000', 'orders');
\echo :SQLSTATE
SELECT snowflake_conceal(1, decode('000102030405060708090a0b0c0d0e0f', 'hex')) = snowflake_conceal(1, :key) AS decoded,
       snowflake_conceal(1, '\x000102030405060708090a0b0c0d0e0f') = snowflake_conceal(1, :key) AS as_bytea;
-- The number of digits comes first.
SELECT snowflake_conceal(1, '00010203040506070809');
\echo :SQLSTATE
-- A concealed ID as a number.
SELECT snowflake_reveal_text('8684110301830119334', :key);
\echo :SQLSTATE
SELECT snowflake_reveal('8684110301830119334'::bigint, :key);
