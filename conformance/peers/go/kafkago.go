package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"fencepost/peers/driver"
)

func segmentConfig(o driver.Options) kafka.ConsumerGroupConfig {
	driver.Unsupported(o.Protocol == "consumer", "kafka-go has no consumer protocol (KIP-848)")
	driver.Unsupported(o.InstanceID != "", "kafka-go has no static membership")
	driver.Unsupported(o.Commit != "sync", "a generation of kafka-go commits synchronously only")
	balancers := map[string]kafka.GroupBalancer{
		"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
	}
	config := kafka.ConsumerGroupConfig{
		ID: o.Group, Brokers: []string{o.Bootstrap}, Topics: o.Topics, StartOffset: kafka.FirstOffset,
	}
	if o.Assignor != "" {
		balancer, known := balancers[o.Assignor]
		driver.Unsupported(!known, "kafka-go has no assignor "+o.Assignor)
		config.GroupBalancers = []kafka.GroupBalancer{balancer}
	}
	if o.SessionTimeout > 0 {
		config.SessionTimeout, config.HeartbeatInterval = o.SessionTimeout, o.Heartbeat()
	}
	return config
}

func segment(o driver.Options) {
	group, err := kafka.NewConsumerGroup(segmentConfig(o))
	driver.Must(err)
	ctx := driver.Stopped()
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				driver.Complain(err)
				wait(ctx)
			}
			continue
		}
		segmentGeneration(o, generation)
	}
	if err := group.Close(); err != nil {
		driver.Complain(err)
	}
	driver.Closed()
}

// segmentGeneration reads each partition of a generation until it ends; then the assignment is revoked.
func segmentGeneration(o driver.Options, generation *kafka.Generation) {
	partitions := []driver.Partition{}
	readers := sync.WaitGroup{}
	begin := []func(){}
	for topic, assignments := range generation.Assignments {
		for _, each := range assignments {
			partitions = append(partitions, driver.Partition{Topic: topic, Number: int32(each.ID)})
			readers.Add(1)
			begin = append(begin, func() {
				generation.Start(func(ctx context.Context) {
					defer readers.Done()
					segmentRead(ctx, o, generation, topic, each)
				})
			})
		}
	}
	driver.Assignment("assigned", partitions...)
	for _, each := range begin {
		each()
	}
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		readers.Wait()
		driver.Assignment("revoked", partitions...)
	})
}

func segmentRead(
	ctx context.Context, o driver.Options, generation *kafka.Generation, topic string, from kafka.PartitionAssignment,
) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{o.Bootstrap}, Topic: topic, Partition: from.ID, MaxWait: 200 * time.Millisecond,
	})
	defer reader.Close()
	driver.Must(reader.SetOffset(from.Offset))
	for {
		message, err := reader.ReadMessage(ctx)
		if errors.Is(err, kafka.ErrGenerationEnded) || ctx.Err() != nil {
			return
		}
		if err != nil {
			driver.Complain(err)
			wait(ctx)
			continue
		}
		if !o.Process(ctx) {
			return
		}
		driver.Processed(topic, int32(from.ID), message.Offset)
		behind := map[string]map[int]int64{topic: {from.ID: message.Offset + 1}}
		if err := generation.CommitOffsets(behind); err != nil {
			driver.Complain(err)
			continue
		}
		driver.Committed(map[driver.Partition]int64{{Topic: topic, Number: int32(from.ID)}: message.Offset + 1})
	}
}
