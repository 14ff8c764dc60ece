//! Clients in Ruby, from Debian's packages.

use cluster::{assert_caught, command, repository};

use crate::client::{Table, run};

#[test]
fn active_record() {
    let mut ruby = command("/usr/bin/ruby");
    ruby.env_remove("RUBYOPT").env_remove("RUBYLIB").arg(repository().join("tests/clients/ruby/active_record.rb"));
    let printed = run("Active Record", &["ruby/active_record.rb"], Table::Program, false, ruby);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the table has no row with ID 1 and name Tony");
}
