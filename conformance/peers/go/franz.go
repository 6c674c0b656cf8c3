package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"fencepost/peers/driver"
)

func franzOptions(o driver.Options) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap), kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// no rebalance while a record is processed
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(franzSays("assigned")),
		kgo.OnPartitionsLost(franzSays("lost")),
	}
	if o.InstanceID != "" {
		options = append(options, kgo.InstanceID(o.InstanceID))
	}
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	if o.Protocol == "consumer" {
		driver.Unsupported(o.SessionTimeout > 0, "the broker decides the session timeout of the consumer protocol")
		driver.Unsupported(o.Assignor != "" && o.Assignor != "range", "the consumer protocol has no assignor "+o.Assignor)
		options = append(options, kgo.ServerSideBalancer())
	} else if o.SessionTimeout > 0 {
		options = append(options, kgo.SessionTimeout(o.SessionTimeout), kgo.HeartbeatInterval(o.Heartbeat()))
	}
	if o.Assignor != "" {
		options = append(options, kgo.Balancers(balancers[o.Assignor]))
	}
	revoked := franzSays("revoked")
	if o.Commit == "auto" {
		options = append(options, kgo.AutoCommitMarks(), kgo.AutoCommitInterval(1e9), kgo.AutoCommitCallback(franzCommitted))
		revoked = func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
			if err := client.CommitMarkedOffsets(ctx); err != nil {
				driver.Complain(err)
			}
			franzSays("revoked")(ctx, client, partitions)
		}
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	return append(options, kgo.OnPartitionsRevoked(revoked))
}

func franzSays(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		partitions := []driver.Partition{}
		for topic, numbers := range topics {
			for _, number := range numbers {
				partitions = append(partitions, driver.Partition{Topic: topic, Number: number})
			}
		}
		driver.Assignment(event, partitions...)
	}
}

// franzCommitted is called with the result of each commit.
func franzCommitted(_ *kgo.Client, asked *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
	if err != nil {
		driver.Complain(err)
		return
	}
	wanted := map[driver.Partition]int64{}
	for _, topic := range asked.Topics {
		for _, row := range topic.Partitions {
			wanted[driver.Partition{Topic: topic.Topic, Number: row.Partition}] = row.Offset
		}
	}
	stored := map[driver.Partition]int64{}
	for _, topic := range answer.Topics {
		for _, row := range topic.Partitions {
			if refused := kerr.ErrorForCode(row.ErrorCode); refused != nil {
				driver.Complain(refused)
				continue
			}
			partition := driver.Partition{Topic: topic.Topic, Number: row.Partition}
			stored[partition] = wanted[partition]
		}
	}
	if len(stored) > 0 {
		driver.Committed(stored)
	}
}

func franz(o driver.Options) {
	client, err := kgo.NewClient(franzOptions(o)...)
	driver.Must(err)
	ctx := driver.Stopped()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 1)
		for _, each := range fetches.Errors() {
			if !errors.Is(each.Err, context.Canceled) {
				driver.Complain(each.Err)
			}
		}
		for _, record := range fetches.Records() {
			if !o.Process(ctx) {
				break
			}
			driver.Processed(record.Topic, record.Partition, record.Offset)
			franzCommit(ctx, client, o.Commit, record)
		}
		client.AllowRebalance()
	}
	if err := client.LeaveGroupContext(context.Background()); err != nil {
		driver.Complain(err)
	}
	client.CloseAllowingRebalance()
	driver.Closed()
}

func franzCommit(ctx context.Context, client *kgo.Client, how string, record *kgo.Record) {
	behind := map[string]map[int32]kgo.EpochOffset{
		record.Topic: {record.Partition: {Epoch: record.LeaderEpoch, Offset: record.Offset + 1}},
	}
	switch how {
	case "auto":
		client.MarkCommitRecords(record)
	case "sync":
		client.CommitOffsetsSync(ctx, behind, franzCommitted)
	default:
		client.CommitOffsets(ctx, behind, franzCommitted)
	}
}
