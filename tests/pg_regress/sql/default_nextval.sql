-- Keys for tables. They differ from run to run, so what is shown is what holds of all of them.

-- Positive, increasing, of this server, of this time.
SELECT snowflake_nextval() > 0 AS positive, snowflake_nextval() < snowflake_nextval() AS increasing;
SELECT datacenter_id, worker_id,
       created_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 second' AS now
  FROM snowflake_decode(snowflake_nextval());
-- VOLATILE: one for each row, not one for all.
SELECT count(*) AS rows, count(DISTINCT id) AS ids
  FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 1000)) AS drawn;

CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    number serial,
    customer text NOT NULL UNIQUE
);
INSERT INTO orders (customer) VALUES ('Ada') RETURNING id > 0 AS positive, id = snowflake_currval() AS current;
INSERT INTO orders (customer) VALUES ('Grace'), ('Edsger'), ('Barbara') RETURNING customer, id > 0 AS positive;
INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO orders (id, customer) VALUES (DEFAULT, 'Niklaus') RETURNING id = snowflake_currval() AS current;
COPY orders (customer) FROM stdin;
Donald
Leslie
\.
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM orders;
-- In the order of a sequence that is drawn beside them.
SELECT bool_and(id > before) AS in_order_of_insertion
  FROM (SELECT id, lag(id) OVER (ORDER BY number) AS before FROM orders) AS pairs;

UPDATE orders SET id = DEFAULT WHERE customer = 'Ada' RETURNING id = snowflake_currval() AS current;
SELECT customer FROM orders ORDER BY id DESC LIMIT 1;
UPDATE orders SET id = snowflake_nextval() WHERE customer LIKE 'customer %';
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM orders;

-- A key of one's own is kept, and draws none.
SELECT snowflake_currval() AS before \gset
INSERT INTO orders (id, customer) VALUES (1541815603606036480, 'Alan') RETURNING id;
SELECT snowflake_currval() = :before AS none_drawn;
-- A row that is not inserted has used up its ID all the same: there are gaps, as with a sequence.
INSERT INTO orders (customer) VALUES ('Alan') ON CONFLICT (customer) DO NOTHING;
SELECT snowflake_currval() > :before AS drawn;
SELECT snowflake_currval() AS before \gset
INSERT INTO orders (customer) VALUES ('Alan');
\echo :SQLSTATE
SELECT snowflake_currval() > :before AS drawn;

-- A parent and its children in one statement.
CREATE TABLE lines (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    order_id bigint NOT NULL REFERENCES orders,
    item text NOT NULL
);
WITH parent AS (INSERT INTO orders (customer) VALUES ('Tony') RETURNING id)
INSERT INTO lines (order_id, item) SELECT id, item FROM parent, unnest(ARRAY['nut', 'bolt']) AS item;
SELECT l.item, l.id > o.id AS after_the_parent
  FROM lines l JOIN orders o ON o.id = l.order_id WHERE o.customer = 'Tony' ORDER BY l.id;

-- Whoever may insert needs no right of another, unlike with the sequence beside it.
CREATE ROLE clerk;
GRANT INSERT, SELECT ON lines, orders TO clerk;
SET ROLE clerk;
INSERT INTO lines (order_id, item) SELECT id, 'washer' FROM orders WHERE customer = 'Tony' RETURNING item;
INSERT INTO orders (customer) VALUES ('Margaret');
\echo :SQLSTATE
RESET ROLE;
DROP TABLE lines, orders;
DROP ROLE clerk;

-- In a trigger.
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

-- Issuing writes to no table, so a read-only transaction may.
BEGIN READ ONLY;
SELECT snowflake_nextval() > 0 AS issued;
SELECT count(*) FROM snowflake_nextval_batch(5000);
SELECT snowflake_reserve(2) > 0 AS reserved;
COMMIT;
