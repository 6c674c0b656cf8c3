// Drivers of Kafka clients in Go: the first argument names the client (conformance/peers/README.md).
package main

import (
	"fmt"
	"os"

	"fencepost/peers/driver"
)

var clients = map[string]struct {
	module string
	run    func(driver.Options)
}{
	"franz-go": {"github.com/twmb/franz-go", franz},
	"sarama":   {"github.com/IBM/sarama", ibm},
	"kafka-go": {"github.com/segmentio/kafka-go", segment},
}

func main() {
	if len(os.Args) > 1 {
		if client, known := clients[os.Args[1]]; known {
			client.run(driver.Parse(client.module, os.Args[2:]))
			return
		}
	}
	fmt.Fprintln(os.Stderr, "no such client in Go")
	os.Exit(2)
}
