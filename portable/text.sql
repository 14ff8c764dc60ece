-- Functions for IDs in text form: 13 digits in Crockford's base 32.

CREATE OR REPLACE FUNCTION snowflake_portable_digit(id bigint, shift integer)
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((id >> shift) & 31)::integer + 1, 1);

CREATE OR REPLACE FUNCTION snowflake_to_text(id bigint)
    RETURNS snowflake_text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN id < 0 THEN snowflake_portable_negative(id)
        ELSE snowflake_portable_digit(id, 60) || snowflake_portable_digit(id, 55) || snowflake_portable_digit(id, 50)
            || snowflake_portable_digit(id, 45) || snowflake_portable_digit(id, 40) || snowflake_portable_digit(id, 35)
            || snowflake_portable_digit(id, 30) || snowflake_portable_digit(id, 25) || snowflake_portable_digit(id, 20)
            || snowflake_portable_digit(id, 15) || snowflake_portable_digit(id, 10) || snowflake_portable_digit(id, 5)
            || snowflake_portable_digit(id, 0)
    END::snowflake_text;

-- Lower-case letters are accepted as upper-case letters, I and L as 1, and O as 0. The letters are listed individually, because
-- case conversion depends on the collation.
CREATE OR REPLACE FUNCTION snowflake_from_text(text text)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN text COLLATE "C" ~ '^[0-7ILOilo][0-9A-TV-Za-tv-z]{12}$' THEN (
            SELECT sum((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(digits, n, 1)) - 1)::bigint << (65 - 5 * n))::bigint
            FROM translate(text COLLATE "C", 'abcdefghjkmnpqrstvwxyzILOilo', 'ABCDEFGHJKMNPQRSTVWXYZ110110') AS digits,
                generate_series(1, 13) AS n
        )
        ELSE snowflake_portable_not_a_text(text)
    END;
END;
