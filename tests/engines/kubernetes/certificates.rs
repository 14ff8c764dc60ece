//! Certificates of the operator, and a secret that is mounted into a pod.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use cluster::{Host, Scratch, output};

/// A directory with certificates, as the operator makes them: each file belongs to the servers' user.
pub struct Certificates(Scratch);

impl Certificates {
    pub fn new(name: &str) -> Certificates {
        let directory = Scratch::new(&format!("{name}.certificates"));
        let script = "
            set -e
            key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
            for ca in server-ca client-ca; do
                openssl req -x509 $key -days 2 -subj /CN=$NAME -keyout $ca.key -out $ca.crt
            done
            issue() {
                openssl req $key -subj /CN=$2 -keyout $2.key -out $2.csr
                openssl x509 -req -in $2.csr -CA $1.crt -CAkey $1.key -CAcreateserial -days 2 -out $2.crt
            }
            issue server-ca server
            issue client-ca streaming_replica
            issue client-ca fleet
            chmod 600 *.key";
        output(Host::get().shell(script).env("NAME", name).current_dir(&directory.0));
        Certificates(directory)
    }

    pub fn directory(&self) -> String {
        self.0.0.display().to_string()
    }
}

/// Where the manifest finds the files of the secret.
const PROJECTED: &str = "/projected";

/// The files of a secret, as Kubernetes mounts them: they belong to root, and the group of the pod can read them.
pub struct Secret(Scratch);

impl Secret {
    /// Mounts the certificate of the role `fleet` as the manifest says.
    pub fn mounted(name: &str, certificates: &Certificates, manifest: &str) -> Secret {
        let secret = Secret(Scratch::new(&format!("{name}.projected")));
        for item in manifest.split("- key: ").skip(1) {
            let mut lines = item.lines();
            let key = lines.next().expect("a key");
            let field = |name: &str| item.lines().find_map(|line| line.trim().strip_prefix(name));
            let path = field("path: ").expect("a path");
            let file = match key {
                "ca.crt" => "server-ca.crt",
                "tls.crt" => "fleet.crt",
                "tls.key" => "fleet.key",
                _ => panic!("a secret of the operator has no {key}"),
            };
            let text = fs::read_to_string(Path::new(&certificates.directory()).join(file)).expect("a certificate");
            let mode = field("mode: 0").map_or(0o644, |mode| u32::from_str_radix(mode, 8).expect("an octal number"));
            secret.mount(path, &text, mode);
        }
        secret
    }

    fn mount(&self, path: &str, text: &str, mode: u32) -> PathBuf {
        let file = self.0.0.join(path);
        fs::create_dir_all(file.parent().expect("a path")).expect("a new directory can be written");
        // The servers' user owns the file at first.
        Host::get().write(&file, text);
        let group = fs::metadata(&file).expect("just written").gid();
        // Without root, the file still belongs to the servers' user, and libpq would not accept the key.
        let of_root = chown(&file, Some(0), Some(group)).is_ok();
        let mode = if of_root || !path.ends_with(".key") { mode } else { mode & 0o700 };
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("the mode of a new file can be set");
        file
    }

    /// The parameters of a manifest with the path of this test.
    pub fn here(&self, parameters: &[(String, String)]) -> Vec<(String, String)> {
        let here = |value: &String| value.replace(PROJECTED, &self.0.0.display().to_string());
        parameters.iter().map(|(name, value)| (name.clone(), here(value))).collect()
    }

    /// Mounts a password file that the group can read.
    pub fn password_file(&self) -> PathBuf {
        self.mount("fleet/passfile", "*:*:fleet:fleet:example-secret\n", 0o440)
    }

    /// Makes a file one that only the servers' user can read.
    pub fn close(&self, file: &Path) {
        let text = fs::read_to_string(file).expect("just mounted");
        Host::get().write(file, &text);
        fs::set_permissions(file, Permissions::from_mode(0o600)).expect("the mode of a file can be set");
    }
}
