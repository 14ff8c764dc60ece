-- The last ID of this session, and of no other.
SELECT snowflake_currval();
\echo :SQLSTATE

-- Every way of issuing sets it.
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_currval() = :id AS of_nextval;
SELECT snowflake_currval() = :id AS unchanged_by_asking;
SELECT max(id) AS id FROM snowflake_nextval_batch(10) AS id \gset
SELECT snowflake_currval() = :id AS last_of_batch;
SELECT max(id) AS id FROM (SELECT snowflake_nextval_batch(1000) AS id LIMIT 5) AS few \gset
SELECT snowflake_currval() = :id AS last_fetched;
SELECT snowflake_reserve(10) AS id \gset
SELECT snowflake_currval() = :id + 9 AS last_of_block;
SELECT snowflake_reserve(1) AS id \gset
SELECT snowflake_currval() = :id AS block_of_one;

-- What issues nothing leaves it alone: decoding, a refused count, NULL.
SELECT snowflake_currval() AS id \gset
SELECT snowflake_decode(0) IS NOT NULL AS decoded;
SELECT snowflake_reserve(4097);
SELECT snowflake_nextval_batch(0);
SELECT snowflake_reserve(NULL) IS NULL AS nothing;
SELECT snowflake_currval() = :id AS unchanged;

-- It outlives the transaction, for an ID is not taken back.
BEGIN;
SELECT snowflake_nextval() AS id \gset
ROLLBACK;
SELECT snowflake_currval() = :id AS survives_rollback;
DISCARD PLANS;
DISCARD TEMP;
SELECT snowflake_currval() = :id AS survives_other_discards;

-- What takes away the values of sequences takes it away.
DISCARD SEQUENCES;
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_nextval() AS id \gset
DISCARD ALL;
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_nextval() AS id \gset
BEGIN;
DISCARD ALL;
ROLLBACK;
SELECT snowflake_currval() = :id AS survives_discard_that_fails;

-- Another session begins without one.
\c -
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_nextval() > :id AS later_than_the_other;
