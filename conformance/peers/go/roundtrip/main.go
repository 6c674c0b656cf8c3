// Go clients on a server, one a run: each produces, joins a group, reads, commits, and resumes behind what it committed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func same(found []string, wanted ...string) {
	sort.Strings(found)
	if strings.Join(found, ",") != strings.Join(wanted, ",") {
		must(fmt.Errorf("read %v, not %v", found, wanted))
	}
}

// franz-go: produce, consume by either protocol, commit, describe and delete the group.
func franz(ctx context.Context, at, topic string, next bool) {
	producer, err := kgo.NewClient(kgo.SeedBrokers(at))
	must(err)
	put := func(values ...string) {
		for _, value := range values {
			must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
		}
	}
	read := func(count int) []string {
		options := []kgo.Opt{
			kgo.SeedBrokers(at), kgo.ConsumerGroup("franz-" + topic), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		}
		if next {
			options = append(options, kgo.ServerSideBalancer())
		}
		client, err := kgo.NewClient(options...)
		must(err)
		found := []string{}
		for len(found) < count {
			fetches := client.PollFetches(ctx)
			must(fetches.Err0())
			fetches.EachRecord(func(r *kgo.Record) { found = append(found, string(r.Value)) })
		}
		must(client.CommitUncommittedOffsets(ctx))
		must(client.LeaveGroupContext(ctx))
		client.Close()
		return found
	}
	put("a", "b", "c")
	same(read(3), "a", "b", "c")
	put("d")
	same(read(1), "d")
	admin := kadm.NewClient(producer)
	if !next { // it describes groups of the classic protocol only
		lag, err := admin.Lag(ctx, "franz-"+topic)
		must(err)
		for _, each := range lag {
			must(each.Error())
			if each.Lag.Total() != 0 {
				must(fmt.Errorf("lag %d", each.Lag.Total()))
			}
		}
	}
	_, err = admin.DeleteGroups(ctx, "franz-"+topic)
	must(err)
	producer.Close()
}

type reader struct {
	count int
	found []string
	done  context.CancelFunc
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-c.Messages():
			if !open {
				return nil
			}
			r.found = append(r.found, string(message.Value))
			s.MarkMessage(message, "")
			if len(r.found) == r.count {
				s.Commit()
				r.done()
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func ibm(ctx context.Context, at, topic string) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	producer, err := sarama.NewSyncProducer([]string{at}, config)
	must(err)
	put := func(values ...string) {
		for _, value := range values {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
			must(err)
		}
	}
	read := func(count int) []string {
		group, err := sarama.NewConsumerGroup([]string{at}, "sarama-"+topic, config)
		must(err)
		inner, done := context.WithCancel(ctx)
		r := &reader{count: count, done: done}
		for inner.Err() == nil {
			must(group.Consume(inner, []string{topic}, r))
		}
		must(group.Close())
		return r.found
	}
	put("a", "b", "c")
	same(read(3), "a", "b", "c")
	put("d")
	same(read(1), "d")
	must(producer.Close())
}

func segment(ctx context.Context, at, topic string) {
	writer := &kafkago.Writer{Addr: kafkago.TCP(at), Topic: topic, BatchTimeout: time.Millisecond}
	put := func(values ...string) {
		for _, value := range values {
			must(writer.WriteMessages(ctx, kafkago.Message{Value: []byte(value)}))
		}
	}
	read := func(count int) []string {
		r := kafkago.NewReader(kafkago.ReaderConfig{
			Brokers: []string{at}, GroupID: "segmentio-" + topic, Topic: topic, StartOffset: kafkago.FirstOffset,
			MaxWait: 200 * time.Millisecond,
		})
		found := []string{}
		for len(found) < count {
			message, err := r.FetchMessage(ctx)
			must(err)
			must(r.CommitMessages(ctx, message))
			found = append(found, string(message.Value))
		}
		must(r.Close())
		return found
	}
	put("a", "b", "c")
	same(read(3), "a", "b", "c")
	put("d")
	same(read(1), "d")
	must(writer.Close())
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	at, which := os.Args[1], os.Args[2]
	switch which {
	case "franz-go":
		franz(ctx, at, which, false)
	case "franz-go-next":
		franz(ctx, at, which, true)
	case "sarama":
		ibm(ctx, at, which)
	case "kafka-go":
		segment(ctx, at, which)
	default:
		must(errors.New("no client " + which))
	}
	fmt.Println("ok")
}
