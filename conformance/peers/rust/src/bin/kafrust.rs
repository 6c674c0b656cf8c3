//! Drives kafrust.
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kafrust::{
    ConsumerGroup, ConsumerGroupAssignmentStrategy, ConsumerGroupConfig, ConsumerGroupHeartbeat, ConsumerGroupProtocol,
    ConsumerRecord, OffsetResetPolicy, RebalanceEvent, RebalancePhase,
};
use peers::{Options, assignment, closed, committed, complain, options, processed, stopped, unsupported};

type Places = BTreeSet<(String, i32)>;

static STOPPING: AtomicBool = AtomicBool::new(false);
static HELD: Mutex<Places> = Mutex::new(Places::new());

/// Writes what came and what went: the client tells its whole assignment.
fn holds(now: Places) {
    let mut held = HELD.lock().expect("no thread panics with it");
    let gone: Vec<_> = held.difference(&now).cloned().collect();
    let come: Vec<_> = now.difference(&held).cloned().collect();
    for (event, places) in [("revoked", gone), ("assigned", come)] {
        if !places.is_empty() {
            assignment(event, places);
        }
    }
    *held = now;
}

fn config(given: &Options) -> ConsumerGroupConfig {
    let mut made = ConsumerGroupConfig::new([given.bootstrap.clone()], given.group.clone())
        .client_id("kafrust")
        .offset_reset_policy(OffsetResetPolicy::Earliest)
        // not one record a poll: from a position inside a batch, kafrust 0.5.0 reads the batch again from its first record
        .max_wait_ms(200)
        .enable_auto_commit(given.commit == "auto")
        .auto_commit_interval_ms(1000);
    for topic in &given.topics {
        made = made.subscribe(topic.clone());
    }
    if let Some(id) = &given.instance_id {
        made = made.group_instance_id(id.clone());
    }
    if let Some(session) = given.session_timeout {
        made = made.session_timeout_ms(session.as_millis() as i32);
    }
    // with an eager assignor everything is given up before a rebalance
    let eager = !given.next && given.assignor.as_deref() != Some("cooperative-sticky");
    made = made.rebalance_listener(move |event: RebalanceEvent<'_>| match event.phase() {
        RebalancePhase::Before if eager => holds(Places::new()),
        RebalancePhase::Before => {}
        RebalancePhase::After => {
            holds(event.assignments().iter().map(|each| (each.topic().to_string(), each.partition())).collect());
        }
    });
    if given.next {
        made = made.group_protocol(ConsumerGroupProtocol::Consumer);
        return if given.assignor.is_some() { made.server_assignor("range") } else { made };
    }
    made.assignment_strategy(match given.assignor.as_deref() {
        Some("roundrobin") => ConsumerGroupAssignmentStrategy::RoundRobin,
        Some("sticky") => ConsumerGroupAssignmentStrategy::Sticky,
        Some("cooperative-sticky") => ConsumerGroupAssignmentStrategy::CooperativeSticky,
        _ => ConsumerGroupAssignmentStrategy::Range,
    })
}

async fn process(group: &mut ConsumerGroup, record: &ConsumerRecord, given: &Options) {
    let until = Instant::now() + given.processing;
    while Instant::now() < until && !STOPPING.load(Ordering::Relaxed) {
        tokio::time::sleep(until.saturating_duration_since(Instant::now()).min(Duration::from_millis(20))).await;
    }
    if STOPPING.load(Ordering::Relaxed) {
        return;
    }
    processed(record.topic(), record.partition(), record.offset());
    if given.commit == "auto" {
        return;
    }
    let done = match group.commit_record(record) {
        Ok(()) => group.commit_queued_offsets().await,
        refused => refused,
    };
    match done {
        Ok(()) => committed(record.topic(), record.partition(), record.offset() + 1),
        Err(refused) => complain(refused),
    }
}

async fn consume(group: &mut ConsumerGroup, heartbeat: &mut ConsumerGroupHeartbeat, given: &Options) {
    while !STOPPING.load(Ordering::Relaxed) {
        match group.poll_with_heartbeat(heartbeat).await {
            Ok(records) => {
                for record in &records {
                    process(group, record, given).await;
                }
            }
            Err(problem) => {
                complain(problem);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Joins, and tries again after an error, as the application has to.
async fn joined(given: &Options) -> Option<ConsumerGroup> {
    while !STOPPING.load(Ordering::Relaxed) {
        match config(given).join().await {
            Ok(group) => return Some(group),
            Err(problem) => complain(problem),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    None
}

async fn run(given: &Options) -> Result<(), Box<dyn Error>> {
    let Some(mut group) = joined(given).await else {
        closed();
        return Ok(());
    };
    let mut heartbeat = group.spawn_heartbeat_task(given.heartbeat()).await?;
    consume(&mut group, &mut heartbeat, given).await;
    if let Err(problem) = heartbeat.stop().await {
        complain(problem);
    }
    group.leave().await?;
    holds(Places::new());
    closed();
    Ok(())
}

#[tokio::main]
async fn main() {
    let given = options("kafrust");
    unsupported(given.commit == "async", "kafrust commits synchronously or by itself");
    tokio::spawn(async {
        stopped().await;
        STOPPING.store(true, Ordering::Relaxed);
    });
    if let Err(fatal) = run(&given).await {
        complain(fatal);
        std::process::exit(if STOPPING.load(Ordering::Relaxed) { 0 } else { 1 });
    }
}
