-- Functions that raise errors, with the SQLSTATEs and texts that the library uses.
--
-- A function that only raises an error is STRICT, so that a call with a NULL argument returns NULL, as in the library. Its cost is
-- that of an operator, because otherwise the planner would not inline the functions that call it.
--
-- No string literal in the scripts contains a backslash, except literals that begin with E. In other literals, the meaning of a
-- backslash would depend on standard_conforming_strings.

CREATE OR REPLACE FUNCTION snowflake_portable_raise(code text, message text, detail text, hint text, result anyelement)
    RETURNS anyelement LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail, HINT = hint;
END
$$;

-- Formats a time as ISO 8601 in UTC, regardless of the session's time zone.
CREATE OR REPLACE FUNCTION snowflake_portable_utc(at timestamptz)
    RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET TimeZone = 'UTC' SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN to_jsonb(at) #>> '{}';
END
$$;

-- Converts an argument to ASCII and truncates it to 60 bytes.
CREATE OR REPLACE FUNCTION snowflake_portable_shown(argument text)
    RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg(
            CASE
                WHEN byte = 9 THEN chr(92) || 't'
                WHEN byte = 10 THEN chr(92) || 'n'
                WHEN byte = 13 THEN chr(92) || 'r'
                WHEN byte IN (34, 39, 92) THEN chr(92) || chr(byte)
                WHEN byte BETWEEN 32 AND 126 THEN chr(byte)
                ELSE chr(92) || 'x' || lpad(to_hex(byte), 2, '0')
            END, '' ORDER BY n), '')
        || CASE WHEN octet_length(argument) > 60 THEN '...' ELSE '' END
    FROM generate_series(0, least(octet_length(argument), 60) - 1) AS n,
        get_byte(convert_to(argument, getdatabaseencoding()), n) AS byte;
END;

CREATE OR REPLACE FUNCTION snowflake_portable_not_an_epoch(epoch timestamptz, detail text)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22023',
        format('time %s is not a valid epoch', snowflake_portable_utc(epoch)),
        detail,
        'Pass the time that a timestamp value of 0 represents, with at most millisecond precision.',
        NULL::bigint
    );

CREATE OR REPLACE FUNCTION snowflake_portable_not_a_layout(layout text, detail text)
    RETURNS snowflake_portable_format LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22023',
        format('"%s" is not a valid layout', snowflake_portable_shown(layout)),
        detail,
        'Pass either a layout name from view "snowflake_layouts" or the field widths in bits, for example "41:10:12". If the sequence '
            || 'is the second field, append "s" to its width, for example "39:8s:16@10ms".',
        NULL::snowflake_portable_format
    );

CREATE OR REPLACE FUNCTION snowflake_portable_not_an_id(id bigint, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22003',
        format('%s is not an ID of layout "%s"', id, (format).layout),
        CASE
            WHEN id < 0 THEN 'An ID cannot be negative.'
            ELSE format('The largest ID of this layout is %s.', (format).last_id)
        END,
        'Pass an ID that was issued with this layout.',
        NULL::bigint
    );

CREATE OR REPLACE FUNCTION snowflake_portable_negative(id bigint)
    RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22003', format('%s is not an ID', id), 'An ID cannot be negative.', 'Pass a number greater than or equal to zero.', NULL::text
    );

CREATE OR REPLACE FUNCTION snowflake_portable_not_dated(tick bigint)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22008',
        'timestamp out of range',
        'The time encoded in the ID is outside the range of type timestamp with time zone.',
        'Decode the ID with the layout that was used to issue it.',
        NULL::timestamptz
    );

-- Raises the error for a string that is not an ID in text form. Positions count from 1.
CREATE OR REPLACE FUNCTION snowflake_portable_not_a_text(argument text)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT snowflake_portable_raise(
        CASE WHEN digits = 13 AND length = 13 THEN '22003' ELSE '22023' END,
        format('"%s" is not an ID in text form', snowflake_portable_shown(argument)),
        CASE
            WHEN digits = 13 AND length = 13 THEN 'Character 1 is greater than "7", so the number is too large for type bigint.'
            WHEN digits = 13 THEN 'The text has more than 13 characters.'
            WHEN length = 0 THEN 'The text is empty.'
            WHEN digits = length THEN format('The text ends after character %s, but an ID has 13 characters.', digits)
            WHEN substr(argument, digits + 1, 1) COLLATE "C" ~ '^[!-~]$'
                THEN format('Character %s is "%s", which is not a base-32 digit.', digits + 1, substr(argument, digits + 1, 1))
            ELSE format('Character %s is not a base-32 digit.', digits + 1)
        END,
        CASE
            -- No ID has more than 19 decimal digits.
            WHEN argument COLLATE "C" ~ '^[0-9]{14,19}$' THEN 'The text looks like an ID in decimal form. Cast it to bigint.'
            ELSE 'Pass a string in the form returned by snowflake_to_text(): 13 characters, each of which is a digit or a letter other '
                || 'than U.'
        END,
        NULL::bigint
    )
    FROM char_length(argument) AS length,
        char_length(substring(argument COLLATE "C" FROM '^[0-9A-TV-Za-tv-z]{0,13}')) AS digits;
END;
