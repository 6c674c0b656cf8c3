// A worker in Go, on unmodified franz-go. scene.py says what a worker does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pause = 10 * time.Millisecond

var (
	output sync.Mutex
	enough = make(chan struct{})
	leave  = make(chan struct{})
)

type fields map[string]any

// tell reports a step as a line of JSON.
func tell(event string, more fields) {
	line := fields{"at": time.Now().UnixMilli(), "event": event}
	for name, value := range more {
		line[name] = value
	}
	text, _ := json.Marshal(line)
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func failed(what string, err error) {
	tell("error", fields{"text": what + ": " + err.Error()})
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// produce sends numbered values to the partitions in turn.
func produce(at, topic, name string, partitions int) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(at, ",")...), kgo.ProducerLinger(5*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(err)
	defer client.Close()
	for number := 0; ; number++ {
		value := name + "-" + strconv.Itoa(number)
		record := &kgo.Record{Topic: topic, Partition: int32(number % partitions), Value: []byte(value)}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed("produce", err)
			} else {
				tell("acked", fields{"value": value})
			}
		})
		select {
		case <-enough:
			must(client.Flush(context.Background()))
			tell("produced", nil)
			return
		case <-time.After(pause):
		}
	}
}

// consume runs one member of a group: it reads records and commits their offsets.
func consume(at, topic, group, protocol string) {
	commit := func(client *kgo.Client) {
		offsets := client.UncommittedOffsets()[topic]
		if len(offsets) == 0 {
			return
		}
		wait, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if err := client.CommitUncommittedOffsets(wait); err != nil {
			failed("commit in "+group, err)
			return
		}
		rows := [][2]int64{}
		for partition, offset := range offsets {
			rows = append(rows, [2]int64{int64(partition), offset.Offset})
		}
		tell("committed", fields{"group": group, "offsets": rows})
	}
	moved := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, client *kgo.Client, rows map[string][]int32) {
			if event == "revoked" {
				commit(client)
			}
			tell(event, fields{"group": group, "partitions": append([]int32{}, rows[topic]...)})
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(at, ",")...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(moved("assigned")), kgo.OnPartitionsRevoked(moved("revoked")),
		kgo.OnPartitionsLost(moved("lost")),
	}
	if protocol == "classic" {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(15*time.Second))
	} else {
		options = append(options, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(options...)
	must(err)
	defer client.CloseAllowingRebalance()
	for {
		select {
		case <-leave:
			return
		default:
		}
		wait, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollRecords(wait, 100)
		stop()
		for _, each := range fetches.Errors() {
			if each.Err != context.DeadlineExceeded {
				failed("read in "+group, each.Err)
			}
		}
		rows := [][3]any{}
		fetches.EachRecord(func(r *kgo.Record) { rows = append(rows, [3]any{r.Partition, r.Offset, string(r.Value)}) })
		if len(rows) > 0 {
			tell("read", fields{"group": group, "records": rows})
		}
		commit(client)
		client.AllowRebalance()
	}
}

func main() {
	at, topic, name := os.Args[1], os.Args[2], os.Args[4]
	partitions, err := strconv.Atoi(os.Args[3])
	must(err)
	var all sync.WaitGroup
	all.Go(func() { produce(at, topic, name, partitions) })
	for _, each := range os.Args[5:] {
		group, protocol, _ := strings.Cut(each, ":")
		all.Go(func() { consume(at, topic, group, protocol) })
	}
	input := bufio.NewReader(os.Stdin)
	input.ReadString('\n')
	close(enough)
	io.Copy(io.Discard, input)
	close(leave)
	all.Wait()
	tell("closed", nil)
}
