-- With a collation, so that texts sort like their IDs whatever the collation of the database is: in Estonian, Z sorts before T,
-- and Hungarian and Danish have letters of two characters. In one spelling, so that equal IDs are equal texts.
CREATE DOMAIN snowflake_text AS text COLLATE "C"
    CONSTRAINT snowflake_text_digits CHECK (VALUE ~ '^[0-7][0-9A-HJKMNP-TV-Z]{12}$');
