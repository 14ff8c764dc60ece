//! Prints the script for `CREATE EXTENSION`, which the macros of pgrx have put into a section of the library: `schema LIBRARY`.
//!
//! cargo-pgrx does the same among many other things, and takes several minutes to compile.

use std::env;
use std::fs;

use eyre::{OptionExt, Result, WrapErr};
use object::{Object, ObjectSection};
use pgrx_sql_entity_graph::section::{decode_entities, is_schema_section_name};
use pgrx_sql_entity_graph::{ControlFile, PgrxSql, SqlGraphEntity};

/// The name under which the script loads the library. The control file replaces it.
const LIBRARY: &str = "snowflake_pg";

/// What the script needs of the extension's control file.
const CONTROL: &str = include_str!("../../../snowflake_pg.control");

fn main() -> Result<()> {
    let path = env::args_os().nth(1).ok_or_eyre("usage: schema LIBRARY")?;
    let file = fs::read(&path).wrap_err_with(|| path.display().to_string())?;
    let library = object::File::parse(file.as_slice())?;
    let section = library.sections().find(|section| section.name().is_ok_and(is_schema_section_name));
    let section = section.ok_or_eyre("the library contains no SQL")?;
    let control = ControlFile::from_str_with_cargo_version(CONTROL, env!("CARGO_PKG_VERSION"))?;
    let root = SqlGraphEntity::ExtensionRoot(control);
    let entities = decode_entities(section.data()?)?;
    let script = PgrxSql::build([root].into_iter().chain(entities), LIBRARY.into(), false)?;
    print!("{}", script.to_sql()?);
    Ok(())
}
