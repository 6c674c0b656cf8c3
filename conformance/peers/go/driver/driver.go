// Package driver has the command line and the events that the drivers in Go share (conformance/peers/README.md).
package driver

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options is the command line. Empty or zero: the client's default.
type Options struct {
	Bootstrap      string
	Group          string
	Topics         []string
	Protocol       string
	InstanceID     string
	Assignor       string
	SessionTimeout time.Duration
	Processing     time.Duration
	Commit         string
}

// Partition is written as [topic, number].
type Partition struct {
	Topic  string
	Number int32
}

// Heartbeat is a third of the session timeout, at most a second.
func (o Options) Heartbeat() time.Duration {
	return min(time.Second, o.SessionTimeout/3)
}

// Parse reads the options of a driver. --version prints the version of the module.
func Parse(module string, args []string) Options {
	o := Options{}
	flags := flag.NewFlagSet(module, flag.ExitOnError)
	flags.StringVar(&o.Bootstrap, "bootstrap", "", "HOST:PORT")
	flags.StringVar(&o.Group, "group", "", "")
	flags.Func("topic", "may be given again", func(topic string) error { o.Topics = append(o.Topics, topic); return nil })
	flags.StringVar(&o.Protocol, "protocol", "classic", "classic or consumer")
	flags.StringVar(&o.InstanceID, "instance-id", "", "")
	flags.StringVar(&o.Assignor, "assignor", "", "range, roundrobin, sticky or cooperative-sticky")
	session := flags.Int("session-timeout", 0, "milliseconds")
	processing := flags.Int("processing-ms", 0, "milliseconds for each record")
	flags.StringVar(&o.Commit, "commit", "sync", "sync, async or auto")
	version := flags.Bool("version", false, "")
	_ = flags.Parse(args)
	if *version {
		fmt.Println(versionOf(module))
		os.Exit(0)
	}
	usage(o.Bootstrap != "" && o.Group != "" && len(o.Topics) > 0, "--bootstrap, --group and --topic are needed")
	usage(slices.Contains([]string{"classic", "consumer"}, o.Protocol), "no protocol "+o.Protocol)
	usage(slices.Contains([]string{"sync", "async", "auto"}, o.Commit), "no way to commit "+o.Commit)
	known := []string{"", "range", "roundrobin", "sticky", "cooperative-sticky"}
	usage(slices.Contains(known, o.Assignor), "no assignor "+o.Assignor)
	o.SessionTimeout = time.Duration(*session) * time.Millisecond
	o.Processing = time.Duration(*processing) * time.Millisecond
	return o
}

func usage(holds bool, problem string) {
	if !holds {
		fmt.Fprintln(os.Stderr, problem)
		os.Exit(2)
	}
}

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			return each.Version
		}
	}
	return "unknown"
}

// Unsupported ends the driver if the client has no such thing.
func Unsupported(wanted bool, what string) {
	if wanted {
		fmt.Fprintln(os.Stderr, "unsupported: "+what)
		os.Exit(64)
	}
}

// Must ends the driver at an error that it cannot survive.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Complain writes an error that the client reports and the driver survives, such as a refused commit.
func Complain(problem any) {
	write(map[string]any{"event": "error", "message": fmt.Sprint(problem)})
	fmt.Fprintln(os.Stderr, "error:", problem)
}

var writing sync.Mutex

func write(event map[string]any) {
	line, err := json.Marshal(event)
	Must(err)
	writing.Lock()
	defer writing.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// Assignment writes assigned, revoked or lost.
func Assignment(event string, partitions ...Partition) {
	slices.SortFunc(partitions, func(a, b Partition) int {
		if a.Topic != b.Topic {
			if a.Topic < b.Topic {
				return -1
			}
			return 1
		}
		return int(a.Number - b.Number)
	})
	rows := [][]any{}
	for _, each := range partitions {
		rows = append(rows, []any{each.Topic, each.Number})
	}
	write(map[string]any{"event": event, "partitions": rows})
}

// Processed writes that a record was processed.
func Processed(topic string, partition int32, offset int64) {
	write(map[string]any{"event": "processed", "topic": topic, "partition": partition, "offset": offset})
}

// Committed writes an offset that the broker has stored.
func Committed(offsets map[Partition]int64) {
	rows := [][]any{}
	for each, offset := range offsets {
		rows = append(rows, []any{each.Topic, each.Number, offset})
	}
	write(map[string]any{"event": "committed", "offsets": rows})
}

// Closed writes that the client is closed.
func Closed() {
	write(map[string]any{"event": "closed"})
}

// Stopped returns a context that SIGTERM and SIGINT end.
func Stopped() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	return ctx
}

// Process spends the time that a record takes; false: the context ended before.
func (o Options) Process(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(o.Processing):
		return ctx.Err() == nil
	}
}
