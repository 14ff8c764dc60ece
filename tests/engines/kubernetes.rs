//! The manifests of docs/kubernetes.md: instances with one configuration, in pods that are restarted, deleted and created again, while
//! a service leads to the primary. The operator, the containers and their volumes are played by the test.

mod certificates;
mod manifest;
mod pods;
mod service;

use cluster::{Answer, PATIENCE, Recipe, Stop, assert_caught, check_unique, draw_above, ensure, typed, within};

use crate::kubernetes::certificates::Secret;
use crate::kubernetes::manifest::{list, parameters};
use crate::kubernetes::pods::{Pod, Shop};

const PAGE: &str = "docs/kubernetes.md";

fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// Where the instances get their worker ID from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// The registry in the manifest of the page.
    Registry,
    /// A worker ID in the manifest.
    Manifest,
}

/// Starts the cluster of the page, cuts off the node of its primary, promotes a standby, and creates pods again.
fn play(name: &str, from: From) -> Result<(), String> {
    let [manifest, registry, query, shown] =
        section("A CloudNativePG cluster").rest(["yaml cluster", "sql registry", "sql servers", "text"]);
    assert_eq!(list(&manifest, "shared_preload_libraries"), ["snowflake_pg"]);
    assert!(manifest.contains("\n  extensions:\n    - name: snowflake_pg\n"), "no database has the extension");
    let mut parameters = parameters(&manifest);
    if from == From::Manifest {
        parameters = vec![("snowflake_pg.worker_id".into(), "1".into())];
    }
    let shop = Shop::new(name, &parameters);
    let [mut orders_1, mut orders_2, mut orders_3] = [1, 2, 3].map(|ordinal| shop.pod(ordinal));
    orders_1.create(&shop);
    typed(orders_1.server().psql(), &registry.replace("41:10:12", cluster::SPARSE_LAYOUT))?;
    drop(orders_1.server().session());
    for (ordinal, standby) in [&mut orders_2, &mut orders_3].into_iter().enumerate() {
        if from == From::Registry {
            orders_1.wait_for_registered(ordinal + 1)?;
        }
        standby.join(&shop, &orders_1);
    }
    if from == From::Registry {
        orders_1.wait_for_registered(3)?;
        let found = typed(orders_1.server().psql(), &query)?;
        assert_eq!(without_hosts(&found), without_hosts(&shown));
        let configured = [&orders_1, &orders_2, &orders_3].map(Pod::configuration);
        assert!(configured.iter().all(|conf| *conf == configured[0]), "{configured:?}");
    }

    let mut ids = orders_1.server().connect().batch(cluster::SPARSE_PER_SECOND);
    let numbers = [&orders_1, &orders_2, &orders_3].map(Pod::worker);
    ensure!(from == From::Manifest || numbers == ["0", "1", "2"], "{numbers:?}");
    for standby in [&orders_2, &orders_3] {
        standby.wait_for_replay_of(&orders_1);
    }
    let mark = orders_1.server().shown_mark();
    // The node of the primary is cut off, and the server goes on. The operator promotes the standby that has received the most WAL.
    shop.service.lead_to("");
    if orders_3.received() > orders_2.received() {
        std::mem::swap(&mut orders_2, &mut orders_3);
    }
    orders_2.server().promote();
    shop.service.lead_to(&orders_2.address);
    for pod in [&orders_1, &orders_2] {
        pod.server().wait_for_ids();
        ids.extend(draw_above(&mut pod.server().connect(), mark));
    }
    check_unique(&mut ids)?;
    if from == From::Manifest {
        return Ok(());
    }

    // The operator creates the former primary again, with an empty volume.
    orders_1.delete();
    let mut orders_1 = shop.pod(1);
    orders_1.join(&shop, &orders_2);
    let again = orders_1.wait_for_other_worker(&numbers)?;
    // The container of the third pod is restarted, while nobody answers.
    shop.service.lead_to("");
    let before = orders_3.worker();
    orders_3.restart(Stop::Immediate);
    orders_3.wait_for_log(&format!("continuing with worker ID {before} from the witness"))?;
    assert_eq!(orders_3.worker(), before);
    // The third pod is deleted, and created again with its volume.
    orders_3.reschedule();
    ensure!(!orders_3.server().log().contains("continuing with worker ID"), "{}", orders_3.log());
    shop.service.lead_to(&orders_2.address);
    let known = [&numbers[..], &[again]].concat();
    let last = orders_3.wait_for_other_worker(&known)?;
    orders_3.wait_for_log("snowflake_pg: the registry assigned worker ID")?;

    // A failover to the pod that was created again.
    orders_3.wait_for_replay_of(&orders_2);
    let mark = orders_2.server().shown_mark();
    shop.service.lead_to("");
    orders_3.server().promote();
    shop.service.lead_to(&orders_3.address);
    for pod in [&orders_2, &orders_3] {
        pod.server().wait_for_ids();
        ids.extend(draw_above(&mut pod.server().connect(), mark));
    }
    assert_eq!(orders_3.worker(), last);
    check_unique(&mut ids)?;

    // After two failovers within a quarantine, a pod that is created again gets a worker ID.
    orders_2.delete();
    let mut orders_2 = shop.pod(2);
    orders_2.join(&shop, &orders_3);
    let spare = orders_2.wait_for_other_worker(&known)?;
    // It waits if nothing shows how much the registry has lost.
    typed(orders_3.server().psql(), "SELECT snowflake_registry.close();")?;
    orders_2.delete();
    let mut orders_2 = shop.pod(2);
    orders_2.join(&shop, &orders_3);
    let known = [&known[..], &[spare]].concat();
    let [waiting, open] = section("What happens to the worker ID").rest(["text waiting", "sql open"]);
    orders_2.wait_for_log(waiting.trim())?;
    typed(orders_3.server().psql(), &open)?;
    orders_2.wait_for_other_worker(&known)?;

    // The pod of the primary is created again with its volume, and asks its own registry.
    orders_3.reschedule();
    orders_3.wait_for_other_worker(&[last])?;
    orders_3.server().wait_for_ids();
    ids.extend(orders_3.server().connect().batch(cluster::SPARSE_PER_SECOND));
    check_unique(&mut ids)?;
    check_restored(name, &parameters, &orders_3)
}

/// Checks that a cluster which is restored from a backup, with its own certificates, gets no worker ID from the registry in its origin.
fn check_restored(name: &str, parameters: &[(String, String)], origin: &Pod) -> Result<(), String> {
    let restored = Shop::at(19, &format!("{name}_restored"), parameters);
    // The connection string is that of the origin, and leads there.
    restored.service.lead_to(&origin.address);
    let mut pod = restored.pod(11);
    pod.restore(origin);
    pod.wait_for_log("certificate verify failed")?;
    let refused = pod.server().connect().refusal("SELECT snowflake_nextval()").1;
    ensure!(refused == "the registry has not assigned a worker ID to this server", "{refused}");
    Ok(())
}

/// The output of psql without the column with the names of the hosts, and without the widths of the columns.
fn without_hosts(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| !line.contains("--") && !line.trim().is_empty()).map(cells);
    rows.map(|mut row| {
        if row.len() > 1 {
            row.remove(2);
        }
        row
    })
    .collect()
}

#[test]
fn instances_with_one_configuration_and_new_pods_repeat_nothing() {
    play("pods", From::Registry).unwrap();
}

#[test]
fn instances_with_a_worker_id_in_the_manifest_are_caught() {
    assert_caught(play("pods_alike", From::Manifest), "IDs came twice");
}

/// The connection string of the page for a registry that several clusters use.
#[test]
fn a_registry_of_its_own_takes_a_certificate_and_no_password_file_that_the_group_reads() {
    let [fleet, client, error] =
        section("One registry for several clusters").rest(["yaml fleet", "yaml client", "text password"]);
    let (name, rules) = ("pods_fleet", list(&fleet, "pg_hba"));
    assert_eq!(list(&client, "shared_preload_libraries"), ["snowflake_pg"]);

    let shop = Shop::new(name, &[]);
    let mut fleet = shop.pod(1);
    fleet.rules(&rules);
    fleet.create(&shop);
    typed(fleet.server().psql(), &Recipe::of("docs/registry.md", "Set up the registry").block("sql registry")).unwrap();
    let secret = Secret::mounted(name, &shop.certificates, &client);
    let connected = |number: u8, parameters: &[(String, String)]| {
        let mut pod = Shop::client(&shop, number, parameters);
        pod.start();
        pod
    };
    let parameters = secret.here(&parameters(&client));
    let orders = connected(2, &parameters);
    orders.server().wait_for_ids();

    // The same with a password file that the group can read, as the files of a secret are mounted.
    let hba = format!("{}\nhostssl fleet fleet all scram-sha-256", pods::TRUST);
    fleet.replace_rules(&hba);
    let file = secret.password_file();
    let line = &parameters.iter().find(|(name, _)| name == "snowflake_pg.registry").expect("a registry").1;
    let begin = line.split(" sslcert=").next().expect("a certificate");
    let with_file = [("snowflake_pg.registry".to_string(), format!("{begin} passfile={}", file.display()))];
    let mut shut = connected(3, &with_file);
    let shows = |pod: &Pod| {
        let shown = "SELECT coalesce(heartbeat_error, '') FROM snowflake_status";
        pod.server().session().one::<String>(shown)
    };
    assert!(within(PATIENCE, || shows(&shut).contains(error.trim())), "{}", shows(&shut));
    // Only the mode of the file is wrong.
    secret.close(&file);
    shut.restart(Stop::Fast);
    shut.server().wait_for_ids();
}

/// The volume for the witness of a StatefulSet outlives a container. A directory that is missing is reported.
#[test]
fn a_witness_in_a_volume_in_memory_outlives_the_container() {
    let [manifest] = section("Keep the witness when a container is restarted").rest(["yaml witness"]);
    let arguments = list(&manifest, "args");
    let mount = manifest.lines().find_map(|line| line.trim().strip_prefix("mountPath: ")).expect("a mount");
    assert!(manifest.contains("medium: Memory"));

    let shop = Shop::new("pods_stateful", &[]);
    let mut fleet = shop.pod(1);
    fleet.create(&shop);
    fleet.server().create_fleet("41:10:12");
    let registry = format!("host={} user=postgres dbname=postgres", fleet.server().socket().display());
    let mut pod = Shop::stateful(&shop, 2, &arguments, mount, &registry);
    pod.start();
    pod.server().wait_for_ids();
    let first = pod.worker();
    pod.restart(Stop::Immediate);
    assert_eq!(pod.worker(), first);
    pod.wait_for_log(&format!("continuing with worker ID {first} from the witness")).unwrap();

    let mut bare = Shop::stateful(&shop, 3, &arguments, "/elsewhere", &registry);
    bare.start();
    bare.wait_for_log(&format!("cannot use directory \"{mount}\" for the witness")).unwrap();
    bare.server().wait_for_ids();
    let first = bare.worker();
    bare.restart(Stop::Fast);
    bare.wait_for_other_worker(&[first]).unwrap();
}
