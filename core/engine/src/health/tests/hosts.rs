//! Checked hosts: joining, checks and their time, leaving, the interplay with outlier detection.

use super::flags_of;
use super::mesh::{Mesh, http};
use crate::clock::Time;
use crate::health::*;
use crate::hosts::flag;
use crate::outcome::{Decision, Head, Misuse, Outcome};
use crate::request::Report;
use crate::spec::*;
use nexthop_vectors::cases;
use std::time::Duration;

const FIRST: &str = "10.0.0.1:80";

fn good(_: &str) -> u16 {
    200
}

#[test]
fn tcp_grpc_result() {
    for case in cases("health/tcp_grpc_result.json", 10) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let number = |key: &str| given[key].as_u64().unwrap() as u32;
        let tcp = given["checker"] == "tcp";
        let probe = if tcp {
            let receive = given["receive"].as_array().unwrap().iter();
            Probe::Tcp {
                send: b"PING".to_vec(),
                receive: receive.map(|r| r.as_str().unwrap().into()).collect(),
            }
        } else {
            Probe::Grpc { service: "s".into(), authority: String::new() }
        };
        let check = HealthCheckSpec {
            unhealthy_threshold: number("unhealthy_threshold"),
            healthy_threshold: number("healthy_threshold"),
            probe,
            ..http()
        };
        let mut mesh = Mesh::new(1, vec![check], |_| {});
        assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC));
        if tcp {
            let due = mesh.due();
            let [check] = &due[..] else { panic!("one check") };
            assert_eq!(check.payload, b"PING");
            match given["peer"].as_str().unwrap() {
                "sends xxPO, then NGyy" => {
                    assert!(!mesh.report(check.id, CheckReport::Data(b"xxPO")));
                    assert!(mesh.report(check.id, CheckReport::Data(b"xxPONGyy")));
                }
                "sends NOPE and keeps the connection" => {
                    assert!(!mesh.report(check.id, CheckReport::Data(b"NOPE")));
                    mesh.now += 500;
                    mesh.due();
                }
                "closes" => mesh.break_off(check.id),
                "port closed" => {
                    assert!(mesh.report(check.id, CheckReport::Result(CheckResult::Network)));
                }
                other => panic!("no peer {other}"),
            }
            assert_eq!(mesh.flags(FIRST), Some(flags_of(&expect["flags"])), "{case}");
            let failed = expect["network_failure"].as_u64().unwrap_or(0);
            assert_eq!(mesh.stats()["health_check.network_failure"], failed, "{case}");
            continue;
        }
        let checks = given["checks"].as_array().unwrap();
        let wanted = expect["failed_after_each_check"].as_array().unwrap();
        assert_eq!(checks.len(), wanted.len());
        for (answer, failed) in checks.iter().zip(wanted) {
            let due = mesh.due();
            let [check] = &due[..] else { panic!("one check") };
            assert_eq!((&*check.authority, &check.payload[..]), ("c", &grpc_question("s")[..]));
            let (status, grpc_status, serving) = match answer.as_str().unwrap() {
                "SERVING" => (200, 0, 1),
                "NOT_SERVING" => (200, 0, 2),
                "grpc-status 12" => (200, 12, 1),
                "HTTP 503" => (503, -1, 1),
                "reset" => (0, 0, 0),
                other => panic!("no answer {other}"),
            };
            if status == 0 {
                mesh.break_off(check.id);
            } else {
                let outcome = Outcome { grpc_status, ..Outcome::status(status) };
                assert!(mesh.report(check.id, CheckReport::Answer(&outcome, &[0, 0, 0, 0, 2, 8, serving])));
            }
            let got = mesh.flags(FIRST).unwrap() & flag::FAILED_ACTIVE_HC != 0;
            assert_eq!(got, failed.as_bool().unwrap(), "{answer} of {case}");
            mesh.now += 1000;
        }
    }
}

#[test]
fn multi_checker() {
    let all = cases("health/multi_checker.json", 2);
    let [aggregate, stats] = &all[..] else { panic!("two cases") };
    let named = |name: &str| HealthCheckSpec {
        name: name.into(),
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        ..http()
    };
    let mut mesh = Mesh::new(1, vec![named("a"), named("b")], |_| {});
    let steps = aggregate["given"]["steps"].as_array().unwrap();
    for (at, (step, wanted)) in steps.iter().zip(aggregate["expect"].as_array().unwrap()).enumerate() {
        let due = mesh.due();
        assert_eq!(due.len(), 2);
        for check in due {
            let answer = &step[&*check.spec.name];
            let status = answer.as_u64().unwrap_or(200) as u16;
            mesh.answer(check.id, status, answer == "200 degraded");
            if at == 0 && check.spec.name == "a" {
                assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC), "not before both have answered");
            }
        }
        assert_eq!(mesh.flags(FIRST), Some(flags_of(&wanted["flags"])), "{step}");
        mesh.now += 1000;
    }
    let seen = mesh.stats();
    let expect = &stats["expect"];
    for name in stats["given"]["checkers"].as_array().unwrap() {
        let prefix = expect["per_checker_prefix"].as_str().unwrap();
        let prefix = prefix.replace("cluster.<name>.", "").replace("<checker>", name.as_str().unwrap());
        assert_eq!(seen[&format!("{prefix}attempt")], 7);
        assert_eq!(seen[&format!("{prefix}healthy")], 1);
    }
    for gauge in expect["aggregate_gauges"].as_array().unwrap() {
        let name = gauge.as_str().unwrap().replace("cluster.<name>.", "");
        assert_eq!(seen[&name], u64::from(name.ends_with("healthy")));
    }
    assert!(!seen.contains_key("health_check.attempt"), "no counter over all checkers");
}

#[test]
fn outlier_interplay() {
    let all = cases("health/outlier_interplay.json", 2);
    for case in &all {
        let stays = case["given"]["successful_active_health_check_uneject_host"] == false;
        let mut mesh = Mesh::new(2, vec![HealthCheckSpec { healthy_threshold: 3, ..http() }], |cluster| {
            cluster.outlier = Some(OutlierSpec {
                consecutive_5xx: 2,
                max_ejection_percent: 50,
                successful_active_health_check_uneject_host: !stays,
                ..OutlierSpec::default()
            });
        });
        mesh.round(good);
        let gauge = "outlier_detection.ejections_active";
        for _ in 0..4 {
            mesh.request(500);
        }
        assert_eq!(mesh.stats()[gauge], 1);
        let span = if stays {
            case["expect"]["still_ejected_after_ms"].as_u64().unwrap()
        } else {
            case["expect"]["ejected_for_ms_at_most"].as_u64().unwrap()
        };
        for _ in 0..span / 1000 {
            mesh.now += 1000;
            assert_eq!(mesh.round(good), 2);
        }
        assert_eq!(mesh.stats()[gauge], u64::from(stays), "{case}");
    }
}

#[test]
fn removal() {
    let all = cases("health/removal.json", 7);
    let expect =
        |id: &str| all.iter().find(|case| case["id"] == id).map(|case| case["expect"].clone()).unwrap();
    let total = |mesh: &Mesh| mesh.stats()["membership_total"];
    let passing = |change: &dyn Fn(&mut ClusterSpec)| {
        let mut mesh = Mesh::new(2, vec![http()], change);
        mesh.round(good);
        mesh
    };

    let mut mesh = passing(&|_| {});
    let gone = mesh.remove_first();
    let wanted = expect("passing-host-kept");
    assert_eq!(mesh.flags(FIRST), Some(flags_of(&wanted["host0_flags"])));
    assert_eq!(total(&mesh), wanted["membership_total"].as_u64().unwrap());
    assert_eq!(mesh.stats()["membership_healthy"], wanted["membership_healthy"].as_u64().unwrap());
    let used = (0..4).filter_map(|_| mesh.request(200)).any(|address| address == FIRST);
    assert_eq!(used, wanted["host0_still_used"].as_bool().unwrap());
    assert_eq!(mesh.core.endpoints("c").unwrap().localities[0].endpoints.len(), 1, "listed are the others");
    // It comes back as if it had never left.
    mesh.endpoints.localities[0].endpoints.push(gone);
    mesh.apply();
    assert_eq!(mesh.flags(FIRST), Some(0));
    mesh.endpoints.localities[0].endpoints.pop();
    mesh.apply();
    mesh.now += 1000;
    mesh.round(|address| if address == FIRST { 503 } else { 200 });
    assert_eq!(total(&mesh), expect("kept-host-removed-when-it-fails")["membership_total"].as_u64().unwrap());
    assert_eq!(mesh.flags(FIRST), None);
    mesh.now += 1000;
    assert_eq!(mesh.round(good), 1, "nobody checks it any more");

    let mut mesh = passing(&|cluster| cluster.ignore_health_on_host_removal = true);
    mesh.remove_first();
    assert_eq!(total(&mesh), expect("ignore-health")["membership_total"].as_u64().unwrap());

    let mut failing = passing(&|_| {});
    failing.now += 1000;
    failing.round(|address| if address == FIRST { 503 } else { 200 });
    let status = |status: HealthStatus| {
        passing(&move |cluster: &mut ClusterSpec| {
            cluster.endpoints.localities[0].endpoints[0].health = status
        })
    };
    let at_once = expect("failing-host-removed-at-once")["membership_total"].as_u64().unwrap();
    for mut mesh in [failing, status(HealthStatus::Unhealthy), status(HealthStatus::Timeout)] {
        mesh.remove_first();
        assert_eq!(total(&mesh), at_once);
    }

    let mut ejected = passing(&|cluster| {
        cluster.outlier =
            Some(OutlierSpec { consecutive_5xx: 1, max_ejection_percent: 100, ..OutlierSpec::default() });
    });
    ejected.request(500);
    ejected.request(500);
    assert!(ejected.flags(FIRST).unwrap() & flag::FAILED_OUTLIER_CHECK != 0);
    for (id, mut mesh) in
        [("ejected-host-is-kept", ejected), ("draining-host-is-kept", status(HealthStatus::Draining))]
    {
        mesh.remove_first();
        assert_eq!(mesh.flags(FIRST).is_some(), expect(id)["kept"].as_bool().unwrap(), "{id}");
    }
    let mut mesh = passing(&|cluster| cluster.endpoints.localities[0].endpoints[0].checks.disabled = true);
    assert_eq!(mesh.flags(FIRST), Some(0), "never checked, never failed");
    mesh.remove_first();
    assert_eq!(mesh.flags(FIRST).is_some(), expect("checks-disabled-host")["kept"].as_bool().unwrap());
}

#[test]
fn checks_are_handed_out_once_and_run_out_of_time() {
    let mut mesh = Mesh::new(1, vec![http()], |_| {});
    assert_eq!(mesh.core.checks_deadline(), Time(0));
    let due = mesh.due();
    assert_eq!((due.len(), mesh.due().len()), (1, 0));
    assert_eq!((&*due[0].address, &*due[0].authority, due[0].timeout), (FIRST, "c", 500_000_000));
    let end = mesh.core.checks_deadline();
    assert_eq!(end, Time((mesh.now + 500) * 1_000_000));
    // Any call past the end sees it, whoever makes it.
    mesh.now += 500;
    let now = mesh.time();
    mesh.core.maintain(&mut mesh.worker, now);
    assert_eq!(mesh.stats()["health_check.network_failure"], 1);
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC | flag::ACTIVE_HC_TIMEOUT));
    // The interval begins when the result is known; a late answer is nothing.
    let late = CheckReport::Result(CheckResult::Success { degraded: false });
    assert_eq!(mesh.core.check_result(&mut mesh.worker, due[0].id, late, now), Err(Misuse::Ended));
    assert_eq!(mesh.stats()["health_check.success"], 0);
    mesh.now += 999;
    assert!(mesh.due().is_empty());
    mesh.now += 1;
    assert_eq!(mesh.due().len(), 1);
    let now = mesh.time();
    for id in [0, 77] {
        let report = CheckReport::Result(CheckResult::Network);
        assert_eq!(mesh.core.check_result(&mut mesh.worker, id, report, now), Err(Misuse::Invalid));
    }
}

#[test]
fn a_failed_host_gets_no_request_and_an_immediate_failure_needs_no_check() {
    let mut mesh = Mesh::new(2, vec![http()], |_| {});
    assert_eq!(mesh.request(200), None, "nobody is healthy before the first check");
    mesh.round(|address| if address == FIRST { 200 } else { 503 });
    assert!((0..4).all(|_| mesh.request(200).as_deref() == Some(FIRST)));
    let slot = mesh.core.host_states("c")[0].slot;
    let deadline = mesh.core.checks_deadline();
    let now = mesh.time();
    mesh.core.immediate_fail(slot, now);
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC | flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL));
    assert_eq!(mesh.core.checks_deadline(), deadline, "timers stay");
    assert_eq!(mesh.request(200), None);
    assert_eq!(mesh.stats()["health_check.passive_failure"], 1);
    assert_eq!(mesh.stats()["membership_excluded"], 1);
    for failed in [true, false] {
        mesh.now += 1000;
        mesh.round(good);
        assert_eq!(mesh.flags(FIRST).unwrap() & flag::FAILED_ACTIVE_HC != 0, failed);
    }
}

#[test]
fn an_answer_to_a_request_takes_its_host_out() {
    let mut mesh = Mesh::new(1, vec![http()], |_| {});
    mesh.round(good);
    let now = mesh.time();
    let head = Head { target: mesh.core.resolve("c").unwrap(), ..Head::default() };
    let mut out = Decision::default();
    mesh.core.begin(&mut mesh.worker, &head, None, now, &mut out).unwrap();
    let (_, names) = mesh.core.want(u32::from(out.want_ok)).unwrap();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["x-envoy-immediate-health-check-fail"]);
    let outcome = Outcome { headers: &[0; 8], ..Outcome::status(200) };
    mesh.core.report(&mut mesh.worker, out.attempt, &outcome, Report::Whole, now);
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC | flag::EXCLUDED_VIA_IMMEDIATE_HC_FAIL));
    // Without checks nobody is asked for it.
    let mut mesh = Mesh::new(1, Vec::new(), |_| {});
    mesh.core.begin(&mut mesh.worker, &head, None, now, &mut out).unwrap();
    assert!(mesh.core.want(u32::from(out.want_ok)).unwrap().1.is_empty());
}

#[test]
fn hosts_come_with_their_flags() {
    let mut mesh = Mesh::new(1, vec![http()], |cluster| cluster.ignore_new_hosts_until_first_hc = true);
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC | flag::PENDING_ACTIVE_HC));
    mesh.round(good);
    assert_eq!(mesh.flags(FIRST), Some(0));
    // Made anew at the same address: it keeps what the checker knows.
    mesh.endpoints.localities[0].endpoints[0].hostname = "other".into();
    mesh.apply();
    assert_eq!(mesh.flags(FIRST), Some(0));
    // Unless it is checked elsewhere now.
    mesh.endpoints.localities[0].endpoints[0].checks.port = 81;
    mesh.apply();
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC | flag::PENDING_ACTIVE_HC));
    assert_eq!(mesh.due()[0].address, "10.0.0.1:81");
}

#[test]
fn checkers_come_and_go_with_documents() {
    let mut mesh = Mesh::new(1, Vec::new(), |_| {});
    assert_eq!((mesh.flags(FIRST), mesh.due().len()), (Some(0), 0));
    mesh.specs.clusters[0].health_checks = vec![HealthCheckSpec { alt_port: Some(99), ..http() }];
    let now = mesh.time();
    mesh.core.update(&mesh.specs, now).unwrap();
    assert_eq!(mesh.flags(FIRST), Some(0), "a host that serves goes on until it is checked");
    let due = mesh.due();
    assert_eq!(due[0].address, "10.0.0.1:99");
    mesh.answer(due[0].id, 500, false);
    assert_eq!(mesh.flags(FIRST), Some(flag::FAILED_ACTIVE_HC));
    mesh.specs.clusters[0].health_checks.clear();
    let now = mesh.time();
    mesh.core.update(&mesh.specs, now).unwrap();
    assert_eq!((mesh.flags(FIRST), mesh.due().len()), (Some(0), 0));
    assert!(mesh.request(200).is_some());
}

#[test]
fn events_as_envoy_writes_them() {
    let check = HealthCheckSpec { always_log_failures: true, always_log_success: true, ..http() };
    let mut mesh = Mesh::new(1, vec![check], |cluster| {
        cluster.endpoints.localities[0].locality =
            Some(Locality { zone: "z1".into(), ..Locality::default() });
    });
    let head = "{\"health_checker_type\":\"HTTP\",\"host\":{\"socket_address\":{\"protocol\":\"TCP\",\
         \"address\":\"10.0.0.1\",\"port_value\":80,\"resolver_name\":\"\",\"ipv4_compat\":false,\
         \"network_namespace_filepath\":\"\"}},\"cluster_name\":\"c\",";
    let locality = ",\"locality\":{\"region\":\"\",\"zone\":\"z1\",\"sub_zone\":\"\"}";
    let time = |ms: u64| format!("\"timestamp\":\"1970-01-01T00:00:0{}.001Z\"", ms / 1000);
    let round = |mesh: &mut Mesh, status: u16, degraded: bool| {
        for check in mesh.due() {
            if status == 0 {
                mesh.break_off(check.id);
            } else {
                mesh.answer(check.id, status, degraded);
            }
        }
        let stamp = time(mesh.now);
        mesh.now += 1000;
        (mesh.events(), stamp)
    };
    // Lines of a real Envoy, host and time aside.
    let (events, at) = round(&mut mesh, 0, false);
    let failure = "\"health_check_failure_event\":{\"failure_type\":\"NETWORK\",\"first_check\":true,\"http_status_code\":0}";
    assert_eq!(events, [format!("{head}{at},{failure}{locality}}}")]);
    assert!(round(&mut mesh, 200, false).0[0].ends_with("\"successful_health_check_event\":{}}"));
    let (events, at) = round(&mut mesh, 200, false);
    assert_eq!(events, [format!("{head}\"add_healthy_event\":{{\"first_check\":false}},{at}{locality}}}")]);
    let (events, at) = round(&mut mesh, 200, true);
    assert_eq!(events[1], format!("{head}{at},\"degraded_healthy_host\":{{}}{locality}}}"));
    let (events, at) = round(&mut mesh, 200, false);
    assert_eq!(events[1], format!("{head}{at},\"no_longer_degraded_host\":{{}}{locality}}}"));
    let (events, at) = round(&mut mesh, 503, false);
    let eject = "\"eject_unhealthy_event\":{\"failure_type\":\"ACTIVE\",\"http_status_code\":503}";
    assert_eq!(events[0], format!("{head}{eject},{at}{locality}}}"));
    let failure = "\"health_check_failure_event\":{\"failure_type\":\"ACTIVE\",\"first_check\":false,\"http_status_code\":503}";
    assert_eq!(events[1], format!("{head}{at},{failure}{locality}}}"));
}

#[test]
fn a_forked_child_checks_again_what_the_parent_had_out() {
    let mut mesh = Mesh::new(1, vec![http()], |_| {});
    let due = mesh.due();
    mesh.core.after_fork(1);
    let now = mesh.time();
    let report = CheckReport::Result(CheckResult::Success { degraded: false });
    let told = mesh.core.check_result(&mut mesh.worker, due[0].id, report, now);
    assert_eq!(told, Err(Misuse::Ended), "the parent's check");
    assert_eq!(mesh.round(good), 1);
    assert_eq!(mesh.flags(FIRST), Some(0));
}

#[test]
fn edge_intervals_need_traffic() {
    let check = HealthCheckSpec {
        no_traffic_interval: Duration::from_secs(60),
        no_traffic_healthy_interval: Some(Duration::from_secs(7)),
        ..http()
    };
    let mut mesh = Mesh::new(1, vec![check], |_| {});
    mesh.round(good);
    assert_eq!(mesh.core.checks_deadline(), Time(7_001_000_000));
    mesh.request(200);
    mesh.now = 7001;
    mesh.round(good);
    assert_eq!(mesh.core.checks_deadline(), Time(8_001_000_000));
}

#[test]
fn passing_checks_and_eds_statuses() {
    let all = nexthop_vectors::read("health/eds_status.json", 13);
    let mut seen = 0;
    for case in all.list.iter().filter(|case| case["given"]["active_hc"] == "passing") {
        seen += 1;
        let given = case["given"]["eds_health_status"].as_array().unwrap();
        let mut mesh = Mesh::new(given.len(), vec![http()], |cluster| {
            cluster.panic_threshold = case["given"]["healthy_panic_threshold"].as_u64().unwrap() as u32;
            for (host, status) in cluster.endpoints.localities[0].endpoints.iter_mut().zip(given) {
                host.health = match status.as_str() {
                    Some("UNHEALTHY") => HealthStatus::Unhealthy,
                    Some("DEGRADED") => HealthStatus::Degraded,
                    None => HealthStatus::Unknown,
                    other => panic!("no status {other:?}"),
                };
            }
        });
        mesh.round(good);
        let address = |at: usize| format!("10.0.0.{}:80", at + 1);
        for (at, wanted) in case["expect"]["flags"].as_array().unwrap().iter().enumerate() {
            assert_eq!(mesh.flags(&address(at)), Some(flags_of(wanted)), "{case}");
        }
        let used: std::collections::BTreeSet<String> = (0..200).filter_map(|_| mesh.request(200)).collect();
        let wanted = case["expect"]["used_hosts"].as_array().unwrap().iter();
        let wanted = wanted.map(|at| address(at.as_u64().unwrap() as usize)).collect();
        assert_eq!(used, wanted, "{case}");
    }
    assert!(!all.ours || seen == 2, "{seen}");
}
