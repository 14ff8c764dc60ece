-- The collation makes the strings sort in the order of their IDs, regardless of the database's collation: in Estonian, Z sorts
-- before T, and Hungarian and Danish have letters of two characters. The constraint allows only one spelling, so that equal IDs are
-- equal strings.
CREATE DOMAIN snowflake_text AS text COLLATE "C"
    CONSTRAINT snowflake_text_digits CHECK (VALUE ~ '^[0-7][0-9A-HJKMNP-TV-Z]{12}$');
