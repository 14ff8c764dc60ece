//! The pages to which messages refer, and where a server has them.

use std::fmt::{self, Display, Formatter};

/// The directory of the pages, as a shell finds it. Every way to install the extension puts the pages there, because the shared files
/// are the only ones that packages, archives and container images have in common: minimal systems leave out documentation.
const DIRECTORY: &str = "$(pg_config --sharedir)/snowflake_pg/docs";

/// A page of the manual.
pub struct Page(&'static str);

/// What to do if a server refuses to issue IDs.
pub const BAD_DAY: Page = Page("bad-day.md");

/// Every error.
pub const ERRORS: Page = Page("errors.md");

/// Servers with a registry.
pub const FLEET: Page = Page("fleet.md");

/// Numbers of segments.
pub const ORDERS: Page = Page("orders.md");

/// Where to set the worker ID.
pub const WORKER_IDS: Page = Page("worker-ids.md");

impl Page {
    /// Returns the title of a section in quotation marks and the path of the page.
    pub fn section(&self, title: &str) -> String {
        format!("\"{title}\" in {self}")
    }
}

impl Display for Page {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{DIRECTORY}/{}", self.0)
    }
}
