-- The statements that a server of version 0.2.0-dev sends: hello, claim and renew.

SELECT
    (answer)::pg_catalog.text AS answer, (reason)::pg_catalog.text AS reason, (worker)::pg_catalog.text AS worker,
    (fleet)::pg_catalog.text AS fleet, (life)::pg_catalog.text AS life, (nonce)::pg_catalog.text AS nonce,
    (count)::pg_catalog.text AS count, (start)::pg_catalog.text AS start, (bound)::pg_catalog.text AS bound,
    (EXTRACT(epoch FROM until))::pg_catalog.text AS until, (EXTRACT(epoch FROM now))::pg_catalog.text AS now,
    (EXTRACT(epoch FROM pg_catalog.jsonb_extract_path_text(other, 'seen')::pg_catalog.timestamptz))::pg_catalog.text AS seen,
    (other)::pg_catalog.text AS other
FROM snowflake_registry.hello(
    $1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.text, $3::pg_catalog.text::pg_catalog.int8
);

SELECT
    (answer)::pg_catalog.text AS answer, (reason)::pg_catalog.text AS reason, (worker)::pg_catalog.text AS worker,
    (fleet)::pg_catalog.text AS fleet, (life)::pg_catalog.text AS life, (nonce)::pg_catalog.text AS nonce,
    (count)::pg_catalog.text AS count, (start)::pg_catalog.text AS start, (bound)::pg_catalog.text AS bound,
    (EXTRACT(epoch FROM until))::pg_catalog.text AS until, (EXTRACT(epoch FROM now))::pg_catalog.text AS now,
    (EXTRACT(epoch FROM pg_catalog.jsonb_extract_path_text(other, 'seen')::pg_catalog.timestamptz))::pg_catalog.text AS seen,
    (other)::pg_catalog.text AS other
FROM snowflake_registry.claim(
    $1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.text, $3::pg_catalog.text::pg_catalog.int8,
    $4::pg_catalog.text::pg_catalog.int4, $5::pg_catalog.text::pg_catalog.uuid, $6::pg_catalog.text::pg_catalog.int8,
    $7::pg_catalog.text::pg_catalog.uuid, $8::pg_catalog.text::pg_catalog.int8, $9::pg_catalog.text::pg_catalog.interval,
    $10::pg_catalog.text::pg_catalog.jsonb
);

SELECT
    (answer)::pg_catalog.text AS answer, (reason)::pg_catalog.text AS reason, (worker)::pg_catalog.text AS worker,
    (fleet)::pg_catalog.text AS fleet, (life)::pg_catalog.text AS life, (nonce)::pg_catalog.text AS nonce,
    (count)::pg_catalog.text AS count, (start)::pg_catalog.text AS start, (bound)::pg_catalog.text AS bound,
    (EXTRACT(epoch FROM until))::pg_catalog.text AS until, (EXTRACT(epoch FROM now))::pg_catalog.text AS now,
    (EXTRACT(epoch FROM pg_catalog.jsonb_extract_path_text(other, 'seen')::pg_catalog.timestamptz))::pg_catalog.text AS seen,
    (other)::pg_catalog.text AS other
FROM snowflake_registry.renew(
    $1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.text, $3::pg_catalog.text::pg_catalog.int8,
    $4::pg_catalog.text::pg_catalog.int4, $5::pg_catalog.text::pg_catalog.int4, $6::pg_catalog.text::pg_catalog.uuid,
    $7::pg_catalog.text::pg_catalog.int8, $8::pg_catalog.text::pg_catalog.int8, $9::pg_catalog.text::pg_catalog.uuid,
    $10::pg_catalog.text::pg_catalog.uuid, $11::pg_catalog.text::pg_catalog.int8, $12::pg_catalog.text::pg_catalog.int8,
    $13::pg_catalog.text::pg_catalog.int8, $14::pg_catalog.text::pg_catalog.interval, $15::pg_catalog.text::pg_catalog.jsonb
);
