// A client in Rust on a server: it produces, joins a group, reads, commits, and resumes behind what it committed; then it
// describes the group and deletes it.
use std::error::Error;
use std::time::{Duration, Instant};

use krafka::admin::{ConsumerGroupLagOptions, DeleteConsumerGroupsOptions, DescribeConsumerGroupsOptions};
use krafka::consumer::{AutoOffsetReset, GroupProtocol};
use krafka::{Kafka, Record};

type Done<T> = Result<T, Box<dyn Error>>;

async fn put(kafka: &Kafka, topic: &str, values: &[&str]) -> Done<()> {
    let producer = kafka.producer().build().await?;
    for value in values {
        let _ = producer.send(Record::new(topic, value.to_string())).await?;
    }
    Ok(producer.close().await?)
}

async fn read(kafka: &Kafka, topic: &str, protocol: GroupProtocol, wanted: &[&str]) -> Done<()> {
    let consumer = kafka
        .consumer(format!("krafka-{topic}"))
        .group_protocol(protocol)
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(false)
        .build()
        .await?;
    consumer.subscribe([topic]).await?;
    let mut found: Vec<String> = vec![];
    let began = Instant::now();
    while found.len() < wanted.len() && began.elapsed() < Duration::from_secs(30) {
        for record in consumer.poll(Duration::from_millis(200)).await? {
            found.push(record.value_str().unwrap_or_default().to_string());
        }
    }
    found.sort();
    if found != wanted {
        return Err(format!("read {found:?}, not {wanted:?}").into());
    }
    consumer.commit().await?;
    Ok(consumer.close().await?)
}

#[tokio::main]
async fn main() -> Done<()> {
    let words: Vec<String> = std::env::args().collect();
    let (at, topic) = (&words[1], words[2].as_str());
    let protocol = || if topic.ends_with("-next") { GroupProtocol::Consumer } else { GroupProtocol::Classic };
    let kafka = Kafka::builder(at.as_str()).client_id("krafka").connect().await?;
    put(&kafka, topic, &["a", "b", "c"]).await?;
    read(&kafka, topic, protocol(), &["a", "b", "c"]).await?;
    put(&kafka, topic, &["d"]).await?;
    read(&kafka, topic, protocol(), &["d"]).await?;
    let group = format!("krafka-{topic}");
    let admin = kafka.admin();
    let answer = admin.describe_consumer_groups([&group], DescribeConsumerGroupsOptions::default()).await?;
    let described = answer.into_values().next().ok_or("nothing is described")??;
    if described.state != "Empty" {
        return Err(format!("the group is {}", described.state).into());
    }
    for lag in admin.consumer_group_lag(&group, ConsumerGroupLagOptions::default()).await?.into_values() {
        let lag = lag?;
        if lag.lag != Some(0) {
            return Err(format!("lag {lag:?}").into());
        }
    }
    for (_, deleted) in admin.delete_consumer_groups([&group], DeleteConsumerGroupsOptions::default()).await? {
        deleted?;
    }
    println!("ok");
    Ok(())
}
