package main

import (
	"context"
	"os"
	"time"

	"github.com/IBM/sarama"

	"fencepost/peers/driver"
)

// saramaHandler writes what the client says of its assignment. With a cooperative assignor one session lives through
// rebalances, so there each claim is an assigned partition.
//
// There are no committed events: the result of Commit is told only as an error, on another channel.
type saramaHandler struct {
	options     driver.Options
	cooperative bool
}

func claimed(session sarama.ConsumerGroupSession) []driver.Partition {
	partitions := []driver.Partition{}
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			partitions = append(partitions, driver.Partition{Topic: topic, Number: number})
		}
	}
	return partitions
}

func (h *saramaHandler) Setup(session sarama.ConsumerGroupSession) error {
	if !h.cooperative {
		driver.Assignment("assigned", claimed(session)...)
	}
	return nil
}

func (h *saramaHandler) Cleanup(session sarama.ConsumerGroupSession) error {
	if !h.cooperative {
		driver.Assignment("revoked", claimed(session)...)
	}
	return nil
}

func (h *saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	if h.cooperative {
		partition := driver.Partition{Topic: claim.Topic(), Number: claim.Partition()}
		driver.Assignment("assigned", partition)
		defer driver.Assignment("revoked", partition)
	}
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, open := <-claim.Messages():
			if !open || !h.options.Process(session.Context()) {
				return nil
			}
			driver.Processed(message.Topic, message.Partition, message.Offset)
			session.MarkMessage(message, "")
			if h.options.Commit == "sync" {
				session.Commit()
			}
		}
	}
}

func saramaConfig(o driver.Options) *sarama.Config {
	driver.Unsupported(o.Protocol == "consumer", "sarama has no consumer protocol (KIP-848)")
	driver.Unsupported(o.Commit == "async", "sarama commits synchronously or by itself")
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if wanted := os.Getenv("SARAMA_VERSION"); wanted != "" {
		version, err := sarama.ParseKafkaVersion(wanted)
		driver.Must(err)
		config.Version = version
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = o.Commit == "auto"
	config.Consumer.Offsets.AutoCommit.Interval = time.Second
	config.Consumer.Return.Errors = true
	config.Consumer.Group.InstanceId = o.InstanceID
	if o.SessionTimeout > 0 {
		config.Consumer.Group.Session.Timeout = o.SessionTimeout
		config.Consumer.Group.Heartbeat.Interval = o.Heartbeat()
	}
	strategies := map[string]func() sarama.BalanceStrategy{
		"range":              sarama.NewBalanceStrategyRange,
		"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
		"sticky":             sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}
	if o.Assignor != "" {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[o.Assignor]()}
	}
	return config
}

func ibm(o driver.Options) {
	group, err := sarama.NewConsumerGroup([]string{o.Bootstrap}, o.Group, saramaConfig(o))
	driver.Must(err)
	go func() {
		for problem := range group.Errors() {
			driver.Complain(problem)
		}
	}()
	ctx := driver.Stopped()
	handler := &saramaHandler{o, o.Assignor == "cooperative-sticky"}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, o.Topics, handler); err != nil {
			driver.Complain(err)
			wait(ctx)
		}
	}
	if err := group.Close(); err != nil {
		driver.Complain(err)
	}
	driver.Closed()
}

// wait pauses after a failed attempt to join.
func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}
