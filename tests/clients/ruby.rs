//! Clients in Ruby, from Debian's packages.

use cluster::{assert_caught, command, repository};

use crate::client::{Client, Table};

#[test]
fn active_record() {
    let mut ruby = command("/usr/bin/ruby");
    ruby.env_remove("RUBYOPT").env_remove("RUBYLIB").arg(repository().join("tests/clients/ruby/active_record.rb"));
    let printed = Client::new("Active Record", "ruby/active_record.rb", Table::Program).run(ruby);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the table has no row with ID 1 and name Tony");
}
