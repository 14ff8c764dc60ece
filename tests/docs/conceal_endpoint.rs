//! The endpoints of docs/conceal.md find the order of a public ID, and respond with 404 to everything else. They run with stand-ins for
//! the web framework and the driver, which pass queries to psql.

use std::process::Command;

use cluster::{Answer, Cluster, Host, Scratch, assert_caught, blocks, command, ensure, page};

use crate::conceal::{block, server};

/// FastAPI, as far as the endpoint uses it.
const FASTAPI: &str = "
class HTTPException(Exception):
    def __init__(self, status_code):
        self.status_code = status_code

class FastAPI:
    def get(self, path):
        assert path == '/orders/{public_id}'
        return lambda endpoint: endpoint
";

/// psycopg's pool, as far as the endpoint uses it.
const POOL: &str = "
import contextlib, subprocess

class ConnectionPool:
    def __init__(self, conninfo):
        self.conninfo = conninfo.replace('dbname=shop', 'dbname=postgres')

    @contextlib.contextmanager
    def connection(self):
        yield self

    def execute(self, statement, parameters):
        print('query', end=' ')
        psql = ['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', f'p={parameters[0]}', '-d', self.conninfo]
        statement = statement.replace('%s', \":'p'\")
        self.rows = subprocess.run(psql, input=statement, text=True, check=True, capture_output=True).stdout.splitlines()
        return self

    def fetchone(self):
        return (self.rows[0],) if self.rows else None
";

/// Calls the endpoint with each argument.
const PYTHON: &str = "
import sys
from endpoint import HTTPException, order

for public_id in sys.argv[1:]:
    try:
        print(order(public_id)['customer'])
    except HTTPException as error:
        print(error.status_code)
";

/// Express, as far as the endpoint uses it. When the program listens, it calls the endpoint with each argument.
const EXPRESS: &str = "
module.exports = () => {
  let endpoint;
  return {
    get(path, handler) { if (path === '/orders/:id') endpoint = handler; },
    async listen() {
      for (const id of process.argv.slice(2)) {
        await endpoint({ params: { id } }, { sendStatus: console.log, json: (order) => console.log(order.customer) });
      }
    },
  };
};
";

/// node-postgres, as far as the endpoint uses it.
const PG: &str = "
const { execFileSync } = require('node:child_process');
exports.Pool = class {
  constructor({ user }) { this.user = user; }
  async query(statement, [parameter]) {
    process.stdout.write('query ');
    const psql = ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', `p=${parameter}`, '-U', this.user, '-d', 'postgres'];
    const input = statement.replace('$1', \":'p'\");
    const lines = execFileSync('psql', psql, { input, encoding: 'utf8' }).split('\\n');
    return { rows: lines.filter((line) => line).map((customer) => ({ customer })) };
  }
};
";

/// Returns the command that calls the endpoint in this language.
fn program(language: &str, endpoint: &str, scratch: &Scratch) -> Command {
    match language {
        "python" => {
            scratch.write("fastapi.py", FASTAPI);
            scratch.write("psycopg_pool.py", POOL);
            scratch.write("endpoint.py", endpoint);
            let mut python = command("python3");
            python.arg(scratch.write("calls.py", PYTHON));
            python
        }
        _ => {
            for (name, code) in [("express", EXPRESS), ("pg", PG)] {
                std::fs::create_dir_all(scratch.0.join("node_modules").join(name)).expect("a directory");
                scratch.write(&format!("node_modules/{name}/index.js"), code);
            }
            let mut node = command("node");
            node.env_remove("NODE_OPTIONS").arg(scratch.write("endpoint.mjs", endpoint));
            node
        }
    }
}

/// Checks what the endpoint responds to the public ID of an order, to that of no order, and to texts of another form.
fn check(server: &Cluster, language: &str, endpoint: &str) -> Result<(), String> {
    let scratch = Scratch::new(&format!("conceal_endpoint_{language}"));
    let mut owner = server.connect();
    let public: String = owner.one("SELECT public_id(id) FROM orders WHERE customer = 'customer 7'");
    let mut program = program(language, endpoint, &scratch);
    program.args([&public, "1-0W66XNJVHPTA1", "9-0W66XNJVHPTA1", "1-8000000000000", "1", "", &public.replace('-', "")]);
    program.arg(format!("{public}\n")).arg(format!("x\n{public}"));
    let path = format!("{}:{}", Host::get().installation().bin.display(), std::env::var("PATH").unwrap_or_default());
    program.env("PATH", path).env("PGHOST", server.socket()).env("PGPORT", "5432");
    let ran = program.output().expect("the interpreter can be run");
    let printed = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let wanted = ["query customer 7", "query 404", "query 404", "404", "404", "404", "404", "404", "404"];
    ensure!(printed.lines().eq(wanted), "{language}: {printed}");
    Ok(())
}

#[test]
fn the_endpoints_find_an_order_and_refuse_other_texts() {
    let (server, mut owner) = server("conceal_endpoint");
    owner.batch_execute(&block("CREATE ROLE shop_web")).expect("the page's login");
    for (language, expression, other) in
        [("python", "FORM.fullmatch(", "FORM.match("), ("javascript", "{12}$/", "{12}$/m")]
    {
        let endpoint = blocks(&page("docs/conceal.md"), &format!("{language} endpoint")).concat();
        check(&server, language, &endpoint).unwrap();
        // A text of several lines is no public ID.
        assert_caught(check(&server, language, &endpoint.replacen(expression, other, 1)), "query");
    }
    let mut web = server.connect_as("shop_web");
    assert_eq!(web.code("SELECT key FROM private.id_keys").as_deref(), Some("42501"));
    assert_eq!(web.code("ALTER FUNCTION public_id(bigint) OWNER TO shop_web").as_deref(), Some("42501"));
}
