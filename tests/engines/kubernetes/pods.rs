//! What Kubernetes and the operator do for the instances of a cluster: pods with an address and a `/dev/shm` of their own, a service
//! that leads to the primary, certificates, and one configuration.

use std::fs;

use cluster::{Answer, Boot, Builder, Cluster, Host, PATIENCE, Stop, ensure, loopback, within};

use crate::kubernetes::certificates::Certificates;
use crate::kubernetes::service::PodService;

/// What CloudNativePG 1.29 sets on each instance and that matters to the extension, from its documentation. `archive_command` is a
/// program of the operator.
const FIXED: [(&str, &str); 18] = [
    ("archive_command", "true"),
    ("archive_mode", "on"),
    ("archive_timeout", "5min"),
    ("cluster_name", "orders"),
    ("dynamic_shared_memory_type", "posix"),
    ("full_page_writes", "on"),
    ("hot_standby", "true"),
    ("max_parallel_workers", "32"),
    ("max_replication_slots", "32"),
    ("max_worker_processes", "32"),
    ("recovery_target_timeline", "latest"),
    ("restart_after_crash", "false"),
    ("shared_memory_type", "mmap"),
    ("wal_keep_size", "512MB"),
    ("wal_level", "logical"),
    ("wal_log_hints", "on"),
    ("wal_receiver_timeout", "5s"),
    ("wal_sender_timeout", "5s"),
];

/// The settings with which a test draws every ID of a second, and does not wait a minute for a heartbeat.
const HASTY: [(&str, &str); 3] = [
    ("snowflake_pg.layout", cluster::SPARSE_LAYOUT),
    ("snowflake_pg.max_ahead", "10s"),
    ("snowflake_pg.lease", "10min"),
];

/// The rules for the sessions of the test, which come through the socket.
pub const TRUST: &str = "local all all trust\nlocal replication all trust";

/// The rules that the operator writes before and after those of the manifest.
const REPLICATION: &str = "hostssl postgres streaming_replica all cert\nhostssl replication streaming_replica all cert";
const DEFAULT: &str = "host all all all scram-sha-256";

/// Where the manifests find the certificates of the operator.
const CERTIFICATES: &str = "/controller/certificates";

/// A namespace with the service and the certificates of a cluster.
pub struct Shop {
    name: String,
    pub service: PodService,
    pub certificates: Certificates,
    settings: Vec<(String, String)>,
}

impl Shop {
    /// Prepares a cluster with these parameters in its manifest.
    pub fn new(name: &str, parameters: &[(String, String)]) -> Shop {
        Shop::at(9, name, parameters)
    }

    /// Prepares a cluster whose service has the loopback address of this number.
    pub fn at(number: u8, name: &str, parameters: &[(String, String)]) -> Shop {
        let certificates = Certificates::new(name);
        let service = PodService::new(&loopback(number));
        let mut settings: Vec<(String, String)> =
            FIXED.map(|(name, value)| (name.to_string(), value.to_string())).into();
        // In the operator's file, the parameters of the manifest come before the fixed ones.
        settings.splice(0..0, parameters.iter().cloned());
        let own = "host=orders-rw.shop.svc user=streaming_replica sslmode=verify-ca \
                   sslrootcert=/controller/certificates/server-ca.crt sslcert=/controller/certificates/streaming_replica.crt \
                   sslkey=/controller/certificates/streaming_replica.key";
        settings.push(("primary_conninfo".into(), own.into()));
        settings.push(("ssl".into(), "on".into()));
        for (setting, file) in
            [("ssl_ca_file", "client-ca.crt"), ("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")]
        {
            settings.push((setting.into(), format!("{CERTIFICATES}/{file}")));
        }
        for (_, value) in &mut settings {
            *value = value.replace(CERTIFICATES, &certificates.directory());
            *value = value.replace("orders-rw.shop.svc", &service.address);
        }
        Shop { name: name.into(), service, certificates, settings }
    }

    /// A server in a container, whose user has no certificate in the home directory.
    fn builder(&self, name: &str) -> Builder {
        Cluster::builder(name).unset("snowflake_pg.worker_id").env("HOME", &self.certificates.directory())
    }

    /// A pod of the cluster, which has no volume yet.
    pub fn pod(&self, ordinal: u8) -> Pod {
        let name = format!("{}_{ordinal}", self.name);
        let mut builder = self.builder(&name);
        let hasty = HASTY.map(|(name, value)| (name.to_string(), value.to_string()));
        for (name, value) in self.settings.iter().chain(&hasty) {
            builder = builder.set(name, value);
        }
        Pod::new(&name, builder, ordinal)
    }

    /// A server of another cluster, with these parameters.
    pub fn client(&self, ordinal: u8, parameters: &[(String, String)]) -> Pod {
        let name = format!("{}_{ordinal}", self.name);
        let builder = self.builder(&name).set("snowflake_pg.lease", "10min");
        let here = |value: &str| value.replace("fleet-rw.fleet.svc", &self.service.address);
        let builder = parameters.iter().fold(builder, |builder, (name, value)| builder.set(name, &here(value)));
        let mut pod = Pod::new(&name, builder, ordinal);
        pod.server = Some(pod.builder.take().expect("a new pod").create());
        pod
    }

    /// A server in a StatefulSet, with these arguments and a volume in memory that is mounted here.
    pub fn stateful(&self, ordinal: u8, arguments: &[String], mount: &str, registry: &str) -> Pod {
        let name = format!("{}_{ordinal}", self.name);
        let bare = ["shared_preload_libraries", "snowflake_pg.worker_id", "snowflake_pg.witness_directory"];
        let builder = bare.into_iter().fold(Cluster::builder(&name), Builder::unset);
        let machine = Boot::new(&name);
        let here = |argument: &String| argument.replace(&format!("={mount}"), &format!("={}", machine.dir().display()));
        let builder = arguments.iter().fold(builder, |builder, argument| builder.argument(&here(argument)));
        let builder = builder.set("snowflake_pg.registry", registry).set("snowflake_pg.lease", "10min");
        Pod {
            name,
            address: loopback(ordinal),
            machine,
            builder: None,
            server: Some(builder.create()),
            rules: String::new(),
        }
    }
}

/// A pod of a cluster. The values that differ between pods are those that Kubernetes gives them: the address, the socket, and
/// `/dev/shm`.
pub struct Pod {
    name: String,
    pub address: String,
    machine: Boot,
    builder: Option<Builder>,
    server: Option<Cluster>,
    rules: String,
}

impl Pod {
    fn new(name: &str, builder: Builder, ordinal: u8) -> Pod {
        let (address, machine) = (loopback(ordinal), Boot::new(name));
        let builder = Some(builder.on(&machine).set("listen_addresses", &address));
        Pod { name: name.into(), address, machine, builder, server: None, rules: String::new() }
    }

    pub fn server(&self) -> &Cluster {
        self.server.as_ref().expect("the pod has a volume")
    }

    pub fn log(&self) -> String {
        format!("{}:\n{}", self.name, self.server().log())
    }

    /// Adds rules of the manifest.
    pub fn rules(&mut self, rules: &[String]) {
        self.rules = rules.join("\n");
    }

    fn write_rules(&self, rules: &str) {
        Host::get().write(&self.server().dir().join("pg_hba.conf"), &format!("{rules}\n"));
    }

    /// Replaces all rules of the running server.
    pub fn replace_rules(&self, rules: &str) {
        self.write_rules(rules);
        self.server().reload();
    }

    /// Starts the first instance, to which the service leads from now on.
    pub fn create(&mut self, shop: &Shop) {
        self.server = Some(self.builder.take().expect("a new pod").create());
        self.write_rules(&[TRUST, REPLICATION, &self.rules, DEFAULT].join("\n"));
        self.start();
        let role = "CREATE ROLE streaming_replica LOGIN REPLICATION";
        self.server().connect().batch_execute(role).expect("a superuser may");
        shop.service.lead_to(&self.address);
    }

    /// Starts a standby with an empty volume. It follows the primary to which the service leads.
    pub fn join(&mut self, shop: &Shop, primary: &Pod) {
        let standby = primary.server().backup(self.builder.take().expect("a new pod"));
        assert_eq!(shop.service.leads_to(), primary.address);
        Host::get().write(&standby.dir().join("standby.signal"), "");
        self.server = Some(standby);
        self.start();
        self.wait_for_replay_of(primary);
    }

    /// Starts a copy of another instance as a primary.
    pub fn restore(&mut self, origin: &Pod) {
        self.server = Some(origin.server().backup(self.builder.take().expect("a new pod")));
        self.start();
    }

    pub fn start(&mut self) {
        self.server.as_mut().expect("the pod has a volume").start();
    }

    /// Restarts the container. The pod, and with it the volume in memory, remains.
    pub fn restart(&mut self, how: Stop) {
        self.server.as_mut().expect("the pod has a volume").restart(how);
    }

    /// Deletes the pod, and creates it again with its volume.
    pub fn reschedule(&mut self) {
        self.server.as_mut().expect("the pod has a volume").stop(Stop::Fast);
        self.machine.reboot();
        self.start();
    }

    /// Deletes the pod and its volume.
    pub fn delete(&mut self) {
        self.server = None;
        self.machine.reboot();
    }

    /// The configuration without the values that Kubernetes gives the pod.
    pub fn configuration(&self) -> String {
        let text = fs::read_to_string(self.server().dir().join("cluster.conf")).expect("the server's settings");
        let own = ["unix_socket_directories", "listen_addresses", "snowflake_pg.witness_directory"];
        text.lines().filter(|line| !own.iter().any(|name| line.starts_with(name))).collect::<Vec<_>>().join("\n")
    }

    pub fn worker(&self) -> String {
        self.server().connect().one("SHOW snowflake_pg.worker_id")
    }

    /// Waits until this many servers have renewed their grants at the registry in this instance.
    pub fn wait_for_registered(&self, servers: usize) -> Result<(), String> {
        let count = format!("SELECT count(*) = {servers} FROM snowflake_registry.servers WHERE state = 'live'");
        let mut session = self.server().connect();
        ensure!(within(PATIENCE, || session.one(&count)), "there are not {servers} servers:\n{}", self.log());
        Ok(())
    }

    /// Waits until the log contains this text.
    pub fn wait_for_log(&self, text: &str) -> Result<(), String> {
        ensure!(within(PATIENCE, || self.server().log().contains(text)), "no {text:?} in the log of {}", self.log());
        Ok(())
    }

    /// Waits until the instance has a worker ID that is not in this list, and returns it.
    pub fn wait_for_other_worker(&self, known: &[String]) -> Result<String, String> {
        let other = || self.worker().parse::<u32>().is_ok() && !known.contains(&self.worker());
        ensure!(within(PATIENCE, other), "{} instead of another than {known:?}:\n{}", self.worker(), self.log());
        Ok(self.worker())
    }

    /// Where the WAL ends that a standby has received, as a number that can be compared.
    pub fn received(&self) -> i64 {
        self.server().connect().one("SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint")
    }

    /// Waits until the standby has replayed all WAL that the primary has written.
    pub fn wait_for_replay_of(&self, primary: &Pod) {
        let written: String = primary.server().connect().one("SELECT pg_current_wal_lsn()::text");
        let replayed = format!("SELECT coalesce(pg_last_wal_replay_lsn() >= '{written}', false)");
        let mut session = self.server().connect();
        assert!(within(PATIENCE, || session.one(&replayed)), "the standby does not follow:\n{}", self.log());
    }
}
