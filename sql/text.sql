-- With a collation of its own, so that texts sort like their IDs whatever the database's: in Estonian Z comes before T, and
-- Hungarian and Danish have letters of two characters.
CREATE DOMAIN snowflake_text AS text COLLATE "C";
