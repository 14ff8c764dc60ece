-- Issuing IDs in every way SQL has. The IDs differ from run to run, so what is shown is what holds of all of them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;

-- A new session has no current ID; every way of issuing gives it one.
SELECT snowflake_currval();
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_currval() = :id AS of_nextval;
SELECT max(id) AS id FROM snowflake_nextval_batch(10) AS id \gset
SELECT snowflake_currval() = :id AS of_batch;
SELECT snowflake_reserve(10) AS id \gset
SELECT snowflake_currval() = :id + 9 AS last_of_block;
SELECT snowflake_currval() = snowflake_currval() AS stays;
\c -
SELECT snowflake_currval();
-- It outlives the transaction that issued it, for an ID is not taken back.
BEGIN;
SELECT snowflake_nextval() AS id \gset
ROLLBACK;
SELECT snowflake_currval() = :id AS survives_rollback;

-- Positive, increasing, of this server, of this time.
SELECT snowflake_nextval() > 0 AS positive, snowflake_nextval() < snowflake_nextval() AS increasing;
SELECT datacenter_id, worker_id,
       created_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 second' AS now
  FROM snowflake_decode(snowflake_nextval());
-- VOLATILE: one ID for each row, not one for all.
SELECT count(*) AS rows, count(DISTINCT id) AS ids
  FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 1000)) AS drawn;

-- As a column's default.
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    number serial,
    customer text NOT NULL
);
INSERT INTO orders (customer) VALUES ('Ada') RETURNING id > 0 AS positive, id = snowflake_currval() AS current;
INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO orders (customer) VALUES ('Grace'), ('Edsger'), ('Barbara') RETURNING id > 0 AS positive, customer;
COPY orders (customer) FROM stdin;
Donald
Leslie
\.
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM orders;
SELECT bool_and(id > before) AS in_order_of_insertion
  FROM (SELECT id, lag(id) OVER (ORDER BY number) AS before FROM orders) AS pairs;
UPDATE orders SET id = DEFAULT WHERE customer = 'Ada' RETURNING id = snowflake_currval() AS new;
SELECT customer FROM orders ORDER BY id DESC LIMIT 1;
INSERT INTO orders (id, customer) VALUES (1541815603606036480, 'Alan') RETURNING id;
-- A row that meets a conflict has used up its ID all the same.
INSERT INTO orders (id, customer) VALUES (1541815603606036480, 'Alan')
    ON CONFLICT (id) DO UPDATE SET id = snowflake_nextval() RETURNING id = snowflake_currval() AS new;

-- A parent and its children in one statement.
CREATE TABLE lines (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    "order" bigint NOT NULL REFERENCES orders,
    item text NOT NULL
);
WITH parent AS (INSERT INTO orders (customer) VALUES ('Tony') RETURNING id)
INSERT INTO lines ("order", item) SELECT id, item FROM parent, unnest(ARRAY['nut', 'bolt']) AS item;
SELECT count(*) AS lines, count(DISTINCT l.id) AS ids, bool_and(l.id > o.id) AS after_the_parent
  FROM lines l JOIN orders o ON o.id = l."order" WHERE o.customer = 'Tony';
DROP TABLE lines, orders;

-- In a function and in a trigger.
CREATE TABLE keyless (id bigint, item text);
CREATE FUNCTION give_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := snowflake_nextval();
    RETURN NEW;
END $$;
CREATE TRIGGER give_id BEFORE INSERT ON keyless FOR EACH ROW EXECUTE FUNCTION give_id();
INSERT INTO keyless (item) SELECT 'item' FROM generate_series(1, 100);
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM keyless;
DROP TABLE keyless;
DROP FUNCTION give_id;

-- A batch: as many as asked for, increasing; a query that fetches fewer does not wait for the rest.
SELECT asked, count(*) AS issued, bool_and(id > before IS NOT FALSE) AS increasing
  FROM unnest(ARRAY[1, 2, 4096, 4097, 100000]) AS asked,
       LATERAL (SELECT id, lag(id) OVER (ORDER BY position) AS before
                  FROM snowflake_nextval_batch(asked) WITH ORDINALITY AS drawn (id, position)) AS pairs
 GROUP BY asked ORDER BY asked;
SELECT count(*) FROM (SELECT snowflake_nextval_batch(10000000) LIMIT 5) AS few;
SELECT max(id) AS id FROM (SELECT snowflake_nextval_batch(1000) AS id LIMIT 5) AS few \gset
SELECT snowflake_currval() = :id AS last_fetched, snowflake_nextval() > :id AS goes_on;
SELECT count(*) FROM (SELECT snowflake_nextval_batch(10000000) LIMIT 0) AS none;
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_nextval_batch(1000) > 0 AS positive;
FETCH 2 FROM ids;
-- Another batch between the fetches of this one.
SELECT count(*) FROM snowflake_nextval_batch(1000);
FETCH 1 FROM ids;
MOVE FORWARD ALL FROM ids;
COMMIT;
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextval_batch(1000) AS id UNION ALL SELECT snowflake_nextval_batch(1000)) AS two;

-- A block: its first ID, and as many after it in the same tick, all of this server and none of them issued again.
SELECT count, last_time = first_time AS one_tick, last_sequence - first_sequence + 1 = count AS consecutive,
       first_worker = 1 AND last_worker = 1 AS of_this_server, snowflake_nextval() > first + count - 1 AS not_again
  FROM unnest(ARRAY[1, 2, 1000, 4096]) AS count,
       LATERAL (SELECT snowflake_reserve(count) AS first OFFSET 0) AS block,
       LATERAL snowflake_decode(first) AS f (first_time, first_datacenter, first_worker, first_sequence),
       LATERAL snowflake_decode(first + count - 1) AS l (last_time, last_datacenter, last_worker, last_sequence);
-- A whole tick begins at its beginning.
SELECT sequence FROM snowflake_decode(snowflake_reserve(4096));
SELECT count(*) AS blocks, count(DISTINCT first) AS distinct_firsts, bool_and(first >= before + 3000 IS NOT FALSE) AS apart
  FROM (SELECT first, lag(first) OVER (ORDER BY n) AS before
          FROM (SELECT n, snowflake_reserve(3000) AS first FROM generate_series(1, 50) AS n) AS drawn) AS pairs;

-- Issuing writes nothing to a table, so a read-only transaction may.
BEGIN READ ONLY;
SELECT snowflake_nextval() > 0 AS issued;
SELECT snowflake_reserve(2) > 0 AS reserved;
COMMIT;
