-- Whether the time of an ID lies in a range that is closed below and open above.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- The first and the last ID of the tick .105, and the ID before and after the tick.
CREATE TEMPORARY TABLE probes AS
SELECT *
  FROM (VALUES (snowflake_min_id('2022-06-28 16:07:40.105Z') - 1, 'before'),
               (snowflake_min_id('2022-06-28 16:07:40.105Z'), 'first'),
               (snowflake_max_id('2022-06-28 16:07:40.105Z'), 'last'),
               (snowflake_max_id('2022-06-28 16:07:40.105Z') + 1, 'after')) AS v (id, what);

-- A tick's IDs carry its beginning as their time: a bound inside the tick lies after all of them. Then empty ranges, and
-- bounds that lie outside the layout's time.
\pset null (none)
SELECT b."from", b.until, string_agg(what, ' ' ORDER BY id) AS found
  FROM (VALUES (timestamptz '2022-06-28 16:07:40.105Z', timestamptz '2022-06-28 16:07:40.106Z'),
               ('2022-06-28 16:07:40.104999Z', '2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.105001Z', '2022-06-28 16:07:40.106001Z'),
               ('2022-06-28 16:07:40.105Z', '2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.105001Z', '2022-06-28 16:07:40.105999Z'),
               ('2022-06-28 16:07:40.104Z', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.105Z', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.106Z', '2022-06-28 16:07:40.105Z'),
               ('infinity', '-infinity'),
               ('-infinity', '-infinity'),
               ('infinity', 'infinity'),
               ('-infinity', 'infinity'),
               ('-infinity', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.106Z', 'infinity'),
               ('1970-01-01 00:00Z', '2022-06-28 16:07:40.106Z'),
               ('2022-06-28 16:07:40.105Z', '3000-01-01 00:00Z'),
               ('1970-01-01 00:00Z', '3000-01-01 00:00Z'),
               ('1970-01-01 00:00Z', '2010-11-04 01:42:54.657Z'),
               ('2080-07-10 17:30:30.209Z', '3000-01-01 00:00Z')) AS b ("from", until)
       LEFT JOIN probes ON snowflake_between(id, b."from", b.until)
 GROUP BY b."from", b.until
 ORDER BY b."from", b.until;

-- The first and the last ID of the layout at the ends of its time.
SELECT snowflake_between(0, '-infinity', 'infinity') AS first,
       snowflake_between(9223372036854775807, '-infinity', 'infinity') AS last,
       snowflake_between(0, '-infinity', '2010-11-04 01:42:54.657Z') AS first_before_epoch,
       snowflake_between(0, '2010-11-04 01:42:54.657Z', '2010-11-04 01:42:54.658Z') AS first_in_first_tick,
       snowflake_between(9223372036854775807, '2080-07-10 17:30:30.208Z', '2080-07-10 17:30:30.209Z') AS last_in_last_tick;

-- After the end of a layout that uses all 63 bits no bigint is left to compare with: NULL, and so no row, as with false.
\pset null (null)
SELECT snowflake_between(9223372036854775807, '2080-07-10 17:30:30.209Z', 'infinity') AS last_after_end,
       snowflake_between(9223372036854775807, 'infinity', 'infinity') AS last_at_infinity;

-- What is no ID is in no range, rather than an error in the middle of a table.
SELECT snowflake_between(-1, '-infinity', 'infinity') AS minus_one,
       snowflake_between(-9223372036854775808, '-infinity', 'infinity') AS smallest_bigint;

-- NULL as in any comparison, and as in any AND: not STRICT, for the planner inlines only what is not.
SELECT snowflake_between(NULL, '-infinity', 'infinity') AS id,
       snowflake_between(0, NULL, 'infinity') AS "from",
       snowflake_between(0, '-infinity', NULL) AS until,
       snowflake_between(0, NULL, NULL) AS both,
       snowflake_between(0, NULL, '-infinity') AS decided_by_until,
       snowflake_between(0, '2010-11-04 01:42:54.658Z', NULL) AS decided_by_from;

-- No parameter's name needs quotes.
SELECT snowflake_between(id => 1541815603606036480, start => '2022-06-28', stop => '2022-06-29') AS that_day,
       snowflake_between(stop => '2022-06-28', start => '2022-06-27', id => 1541815603606036480) AS day_before;
