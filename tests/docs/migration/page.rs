//! The sections of docs/migration.md, and the psql into which their blocks are typed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{Builder, Client, Cluster, Section, SetOnDrop, Stop, settings, sqlstate, typed};

/// Returns the text of the page.
pub fn page() -> String {
    cluster::page("docs/migration.md")
}

/// Returns the sections of the page that have blocks, in order.
pub fn sections() -> Vec<Section> {
    cluster::sections(&page())
}

/// Returns the section with this heading.
pub fn section(title: &str) -> Section {
    sections().into_iter().find(|section| section.title == title).expect("a section of the page")
}

/// A part of the page and the text that is typed instead: a reader's mistake, or a change that the page describes in words.
pub type Edit<'a> = (&'a str, &'a str);

/// The edit that changes nothing: the page is typed as it is written.
pub const AS_WRITTEN: Edit<'static> = ("", "");

/// Configures a server that no other check of the page uses, because the checks run at the same time. Autovacuum is off, because
/// a block gives up if it has to wait for autovacuum's locks.
pub fn builder() -> Builder {
    static USED: AtomicU32 = AtomicU32::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    Cluster::builder(&format!("migration_{}_{number}", std::process::id())).set("autovacuum", "off")
}

/// A server on which a section is run.
pub struct SectionRun<'a> {
    pub server: Cluster,
    /// The edits, each with a flag that is true once its part of the page was found.
    edits: Vec<(Edit<'a>, bool)>,
    pub blocks: usize,
    /// The maximum number of times that a block is typed if it waits too long for a lock.
    tries: usize,
    /// How long a statement may take, in seconds. A statement that waits forever is an error, and does not make the test hang.
    pub patience: u32,
}

impl<'a> SectionRun<'a> {
    /// Starts a server that is configured as the README says, and creates tables.
    pub fn on(edit: Edit<'a>, tables: &str) -> SectionRun<'a> {
        let server = builder().start();
        server.session().batch_execute(tables).expect("tables can be made");
        SectionRun::of(server, edit)
    }

    /// Uses a server as it is.
    pub fn of(server: Cluster, edit: Edit<'a>) -> SectionRun<'a> {
        SectionRun { server, edits: vec![(edit, edit == AS_WRITTEN)], blocks: 0, tries: 1, patience: 120 }
    }

    /// Adds a second edit, for a change that the page describes in words and that needs two edits.
    pub fn also(mut self, edit: Edit<'a>) -> SectionRun<'a> {
        self.edits.push((edit, false));
        self
    }

    /// Types the blocks of a section. Before each block and at the end, `live` uses the tables like a client.
    pub fn section(
        &mut self,
        title: &str,
        live: impl FnMut(&mut Client, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.all(&section(title).blocks, live)
    }

    /// Types blocks like those of a section. Each edit must have found its part by the end.
    pub fn all(
        &mut self,
        blocks: &[(String, String)],
        mut live: impl FnMut(&mut Client, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.unfinished(blocks, &mut live)?;
        live(&mut self.server.connect(), "")?;
        for ((part, _), edited) in &self.edits {
            assert!(edited, "no block has {part:?}");
        }
        Ok(())
    }

    /// Types blocks after which others follow.
    pub fn unfinished(
        &mut self,
        blocks: &[(String, String)],
        mut live: impl FnMut(&mut Client, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for (language, text) in blocks {
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

    /// Types blocks like those of a section while another session writes all the time. No statement of this session may fail.
    /// Returns how often it wrote.
    pub fn busy(
        &mut self,
        blocks: &[(String, String)],
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
                    thread::sleep(Duration::from_millis(2));
                }
                Ok::<usize, String>(written)
            });
            let done = {
                let _over = SetOnDrop(&over);
                self.all(blocks, live)
            };
            let written = writing.join().expect("a thread that ends");
            done.and(written)
        })
    }

    /// Types a block. If psql reports an error, returns its message.
    fn psql(&self, text: &str) -> Result<(), String> {
        let mut psql = self.server.psql();
        psql.env("PGOPTIONS", format!("-c statement_timeout={}s", self.patience));
        typed(psql, text).map(drop)
    }
}
