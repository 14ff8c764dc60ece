//! docs/migration.md, and psql, which types it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use cluster::{Builder, Client, Cluster, Section, Stop, settings, sqlstate, typed};

/// The page.
pub fn page() -> String {
    cluster::page("docs/migration.md")
}

/// Its sections that have blocks, in order.
pub fn sections() -> Vec<Section> {
    cluster::sections(&page())
}

/// The one with this headline.
pub fn section(title: &str) -> Section {
    sections().into_iter().find(|section| section.title == title).expect("a section of the page")
}

/// What is typed in place of a part of the page: a reader's mistake, or what the page tells in words.
pub type Edit<'a> = (&'a str, &'a str);

/// Nothing is typed otherwise.
pub const AS_WRITTEN: Edit<'static> = ("", "");

/// A server that no other check of the page uses: they run at the same time.
/// Without autovacuum, for whose locks a block gives up.
pub fn builder() -> Builder {
    static USED: AtomicU32 = AtomicU32::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    Cluster::builder(&format!("migration_{}_{number}", std::process::id())).set("autovacuum", "off")
}

/// Ends those who go on until it is set, also when what they go on for panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One server, on which a section is run.
pub struct Run<'a> {
    pub server: Cluster,
    /// What is typed otherwise, and whether it was there to be typed.
    edits: Vec<(Edit<'a>, bool)>,
    pub blocks: usize,
    /// How often a block is typed that has to wait for a lock for too long.
    pub tries: usize,
    /// How long a statement may take, in seconds: one that waits for ever is an error, not a test that hangs.
    pub patience: u32,
}

impl<'a> Run<'a> {
    /// A server that the README has configured, with tables.
    pub fn on(edit: Edit<'a>, tables: &str) -> Run<'a> {
        let server = builder().start();
        server.session().batch_execute(tables).expect("tables can be made");
        Run::of(server, edit)
    }

    /// A server as it is.
    pub fn of(server: Cluster, edit: Edit<'a>) -> Run<'a> {
        Run { server, edits: vec![(edit, edit == AS_WRITTEN)], blocks: 0, tries: 1, patience: 120 }
    }

    /// The same with another edit, for what the page tells in words and takes two.
    pub fn also(mut self, edit: Edit<'a>) -> Run<'a> {
        self.edits.push((edit, false));
        self
    }

    /// Types the blocks of a section. Before each and at the end somebody uses the tables.
    pub fn section(
        &mut self,
        title: &str,
        mut live: impl FnMut(&mut Client, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for (language, text) in &section(title).blocks {
            live(&mut self.server.connect(), text)?;
            let text = self.edited(text);
            match language.as_str() {
                "sql" => {
                    let waited = |typed: &Result<(), String>| {
                        typed.as_ref().is_err_and(|complaint| complaint.contains("due to lock timeout"))
                    };
                    let mut typed = self.psql(&text);
                    for _ in 1..self.tries {
                        if waited(&typed) {
                            typed = self.psql(&text);
                        }
                    }
                    typed?;
                }
                "conf" => self.configure(&text),
                other => panic!("a block of {other:?}"),
            }
            self.blocks += 1;
        }
        live(&mut self.server.connect(), "")?;
        for ((part, _), edited) in &self.edits {
            assert!(edited, "{title} has no {part:?}");
        }
        Ok(())
    }

    fn edited(&mut self, text: &str) -> String {
        let mut text = text.to_string();
        for ((part, other), edited) in &mut self.edits {
            if !part.is_empty() && text.contains(*part) {
                *edited = true;
                text = text.replace(*part, other);
            }
        }
        text
    }

    fn configure(&mut self, text: &str) {
        for (name, value) in settings(text) {
            self.server.set(name, value);
        }
        self.server.restart(Stop::Fast);
    }

    /// A section while others write without a pause, none of whose statements may fail. Returns how often they wrote.
    pub fn busy_section(
        &mut self,
        title: &str,
        write: &str,
        live: impl FnMut(&mut Client, &str) -> Result<(), String>,
    ) -> Result<usize, String> {
        self.tries = 10;
        let mut writer = self.server.connect();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut written = 0;
                while !over.load(Ordering::Relaxed) {
                    writer.batch_execute(write).map_err(|error| format!("a writer: {}", sqlstate(&error).1))?;
                    written += 1;
                }
                Ok::<usize, String>(written)
            });
            let done = {
                let _over = Over(&over);
                self.section(title, live)
            };
            let written = writing.join().expect("a thread that ends");
            done.and(written)
        })
    }

    /// Types a block; an error is what psql complains of.
    fn psql(&self, text: &str) -> Result<(), String> {
        let mut psql = self.server.psql();
        psql.env("PGOPTIONS", format!("-c statement_timeout={}s", self.patience));
        typed(psql, text).map(drop)
    }
}
