//! The documentation pages to which messages refer, and where these pages are stored on a server.

use std::fmt::{self, Display, Formatter};

/// The directory of the pages, as a shell expression. Every installation method puts the pages into this directory of
/// shared files. Minimal systems omit documentation files, but shared files are included in packages, archives and
/// container images alike.
const DIRECTORY: &str = "$(pg_config --sharedir)/snowflake_pg/docs";

/// A page of the manual.
pub struct Page(&'static str);

/// What to do if a server refuses to issue IDs.
pub const BAD_DAY: Page = Page("bad-day.md");

pub const ERRORS: Page = Page("errors.md");

/// Servers that use a registry.
pub const FLEET: Page = Page("registry.md");

/// Short numbers from segments.
pub const ORDERS: Page = Page("orders.md");

/// Where to set the worker ID.
pub const WORKER_IDS: Page = Page("worker-ids.md");

impl Page {
    /// Returns a reference to a section: its title in quotation marks, and the path of the page.
    pub fn section(&self, title: &str) -> String {
        format!("\"{title}\" in {self}")
    }
}

impl Display for Page {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{DIRECTORY}/{}", self.0)
    }
}
