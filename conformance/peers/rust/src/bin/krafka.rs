//! Drives krafka.
use std::error::Error;
use std::time::Duration;

use krafka::Kafka;
use krafka::consumer::{
    AutoOffsetReset, Consumer, ConsumerRebalanceListener, GroupProtocol, OffsetAndMetadata, PartitionAssignmentStrategy,
    TopicPartition,
};
use peers::{Options, assignment, closed, committed, complain, options, processed, stopped, unsupported};

struct Says;

fn rows(partitions: &[TopicPartition]) -> Vec<(String, i32)> {
    partitions.iter().map(|each| (each.topic.to_string(), each.partition)).collect()
}

impl ConsumerRebalanceListener for Says {
    async fn on_partitions_assigned(&self, partitions: &[TopicPartition]) {
        assignment("assigned", rows(partitions));
    }
    async fn on_partitions_revoked(&self, partitions: &[TopicPartition]) {
        assignment("revoked", rows(partitions));
    }
    async fn on_partitions_lost(&self, partitions: &[TopicPartition]) {
        assignment("lost", rows(partitions));
    }
}

async fn consume(consumer: &Consumer, given: &Options) {
    loop {
        let records = match consumer.poll(Duration::from_millis(200)).await {
            Ok(records) => records,
            Err(problem) => {
                complain(problem);
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        for record in records {
            tokio::time::sleep(given.processing).await;
            processed(&record.topic, record.partition, record.offset);
            if given.commit == "auto" {
                continue;
            }
            let place = TopicPartition::new(record.topic.to_string(), record.partition);
            match consumer.commit_offsets([(place, OffsetAndMetadata::new(record.offset + 1))]).await {
                Ok(()) => committed(&record.topic, record.partition, record.offset + 1),
                Err(refused) => complain(refused),
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let given = options("krafka");
    unsupported(given.commit == "async", "krafka commits synchronously or by itself");
    unsupported(given.assignor.as_deref() == Some("sticky"), "krafka has no assignor sticky");
    let kafka = Kafka::builder(given.bootstrap.as_str()).client_id("krafka").connect().await?;
    let mut made = kafka
        .consumer(given.group.clone())
        .group_protocol(if given.next { GroupProtocol::Consumer } else { GroupProtocol::Classic })
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(given.commit == "auto")
        .auto_commit_interval(Duration::from_secs(1))
        // one record a poll: an automatic commit covers the records that a poll returned
        .max_poll_records(1)
        .rebalance_listener(Says);
    if let Some(id) = &given.instance_id {
        made = made.group_instance_id(id.clone());
    }
    match given.assignor.as_deref() {
        Some("range") if given.next => made = made.group_remote_assignor("range"),
        Some("range") => made = made.partition_assignment_strategy(PartitionAssignmentStrategy::Range),
        Some("roundrobin") => made = made.partition_assignment_strategy(PartitionAssignmentStrategy::RoundRobin),
        Some(_) => made = made.partition_assignment_strategy(PartitionAssignmentStrategy::CooperativeSticky),
        None => {}
    }
    if let Some(session) = given.session_timeout {
        made = made.session_timeout(session).heartbeat_interval(given.heartbeat());
    }
    let consumer = made.build().await?;
    consumer.subscribe(&given.topics).await?;
    tokio::select! { _ = consume(&consumer, &given) => {}, _ = stopped() => {} }
    consumer.close().await?;
    closed();
    Ok(())
}
