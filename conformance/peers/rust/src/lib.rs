//! The command line and the events that the drivers in Rust share (conformance/peers/README.md).

use std::process::exit;
use std::time::Duration;

pub struct Options {
    pub bootstrap: String,
    pub group: String,
    pub topics: Vec<String>,
    pub next: bool,
    pub instance_id: Option<String>,
    pub assignor: Option<String>,
    pub session_timeout: Option<Duration>,
    pub processing: Duration,
    pub commit: String,
}

impl Options {
    /// A third of the session timeout, at most a second.
    pub fn heartbeat(&self) -> Duration {
        self.session_timeout.map_or(Duration::from_secs(1), |session| (session / 3).min(Duration::from_secs(1)))
    }
}

fn usage(problem: String) -> ! {
    eprintln!("{problem}");
    exit(2)
}

/// Ends the driver if the client has no such thing.
pub fn unsupported(wanted: bool, what: &str) {
    if wanted {
        eprintln!("unsupported: {what}");
        exit(64)
    }
}

/// Writes an error that the client reports and the driver survives, such as a refused commit.
pub fn complain(problem: impl std::fmt::Display) {
    let text = problem.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ");
    println!("{{\"event\":\"error\",\"message\":\"{text}\"}}");
    eprintln!("error: {problem}");
}

/// The locked version of a crate.
fn version_of(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let rest = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1).unwrap_or("unknown\"");
    rest.split('"').next().unwrap_or("unknown")
}

/// Reads the options of a driver. --version prints the version of the crate.
pub fn options(name: &str) -> Options {
    let mut made = Options {
        bootstrap: String::new(),
        group: String::new(),
        topics: vec![],
        next: false,
        instance_id: None,
        assignor: None,
        session_timeout: None,
        processing: Duration::ZERO,
        commit: "sync".into(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--version" {
            println!("{}", version_of(name));
            exit(0)
        }
        let value = words.next().unwrap_or_else(|| usage(format!("{word} needs a value")));
        let millis = || Duration::from_millis(value.parse().unwrap_or_else(|_| usage(format!("{word} {value}"))));
        match word.as_str() {
            "--bootstrap" => made.bootstrap = value,
            "--group" => made.group = value,
            "--topic" => made.topics.push(value),
            "--protocol" if value == "classic" || value == "consumer" => made.next = value == "consumer",
            "--instance-id" => made.instance_id = Some(value),
            "--assignor" if ["range", "roundrobin", "sticky", "cooperative-sticky"].contains(&value.as_str()) => {
                made.assignor = Some(value)
            }
            "--session-timeout" => made.session_timeout = Some(millis()),
            "--processing-ms" => made.processing = millis(),
            "--commit" if ["sync", "async", "auto"].contains(&value.as_str()) => made.commit = value,
            _ => usage(format!("no such option: {word} {value}")),
        }
    }
    if made.bootstrap.is_empty() || made.group.is_empty() || made.topics.is_empty() {
        usage("--bootstrap, --group and --topic are needed".into())
    }
    unsupported(
        made.next && made.session_timeout.is_some(),
        "the broker decides the session timeout of the consumer protocol",
    );
    let local = made.next && made.assignor.as_deref().is_some_and(|name| name != "range");
    unsupported(local, "the consumer protocol has no such assignor");
    made
}

/// Writes assigned, revoked or lost. A topic has no character that JSON would escape.
pub fn assignment(event: &str, mut partitions: Vec<(String, i32)>) {
    partitions.sort();
    let rows: Vec<String> = partitions.iter().map(|(topic, number)| format!("[\"{topic}\",{number}]")).collect();
    println!("{{\"event\":\"{event}\",\"partitions\":[{}]}}", rows.join(","));
}

pub fn processed(topic: &str, partition: i32, offset: i64) {
    println!("{{\"event\":\"processed\",\"topic\":\"{topic}\",\"partition\":{partition},\"offset\":{offset}}}");
}

pub fn committed(topic: &str, partition: i32, offset: i64) {
    println!("{{\"event\":\"committed\",\"offsets\":[[\"{topic}\",{partition},{offset}]]}}");
}

pub fn closed() {
    println!("{{\"event\":\"closed\"}}");
}

/// Ends at SIGTERM or SIGINT.
pub async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate()).expect("SIGTERM can be handled");
    let mut interrupted = signal(SignalKind::interrupt()).expect("SIGINT can be handled");
    tokio::select! { _ = terminated.recv() => {}, _ = interrupted.recv() => {} }
}
