// Transactions of franz-go: committed, aborted and fenced ones, and a consume-transform-produce loop.
//
// Usage: franz BOOTSTRAP send NAME TOPIC | fence NAME TOPIC | transform NAME SOURCE TARGET GROUP COUNT | read TOPIC COUNT
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{kgo.SeedBrokers(os.Args[1])}, options...)
	made, err := kgo.NewClient(all...)
	check(err)
	return made
}

func producer(name, topic string) *kgo.Client {
	return client(
		kgo.TransactionalID(name),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
}

// Nine transactions of one record each; every third is aborted.
func send(ctx context.Context, name, topic string) {
	made := producer(name, topic)
	defer made.Close()
	for number := 0; number < 9; number++ {
		check(made.BeginTransaction())
		check(made.ProduceSync(ctx, kgo.StringRecord(strconv.Itoa(number))).FirstErr())
		end := kgo.TryCommit
		if number%3 == 2 {
			end = kgo.TryAbort
		}
		check(made.EndTransaction(ctx, end))
	}
}

// A second producer of the id: the first can do nothing any more.
func fence(ctx context.Context, name, topic string) {
	older := producer(name, topic)
	check(older.BeginTransaction())
	check(older.ProduceSync(ctx, kgo.StringRecord("lost")).FirstErr())
	newer := producer(name, topic)
	// the older one's transaction is aborted first; franz-go leaves it to us to ask again, on any broker
	for tried := 0; ; tried++ {
		_, _, err := newer.ProducerID(ctx)
		if err == nil {
			break
		}
		if tried == 100 {
			check(err)
		}
		time.Sleep(50 * time.Millisecond)
		newer.Close()
		newer = producer(name, topic)
	}
	check(newer.BeginTransaction())
	check(newer.ProduceSync(ctx, kgo.StringRecord("kept")).FirstErr())
	err := older.EndTransaction(ctx, kgo.TryCommit)
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		check(fmt.Errorf("the older producer is not fenced: %v", err))
	}
	check(newer.EndTransaction(ctx, kgo.TryCommit))
	newer.Close()
	older.CloseAllowingRebalance()
}

func transform(ctx context.Context, name, source, target, group string, count int) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(os.Args[1]),
		kgo.TransactionalID(name),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets(),
	)
	check(err)
	defer session.Close()
	for done := 0; done < count; {
		fetches := session.PollRecords(ctx, 3)
		check(fetches.Err())
		records := fetches.Records()
		check(session.Begin())
		for _, record := range records {
			value := append([]byte("twice "), record.Value...)
			check(session.ProduceSync(ctx, &kgo.Record{Topic: target, Value: value}).FirstErr())
		}
		committed, err := session.End(ctx, kgo.TryCommit)
		check(err)
		if committed {
			done += len(records)
		}
	}
}

func read(ctx context.Context, topic string, count int) {
	made := client(
		kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer made.Close()
	for done := 0; done < count; {
		fetches := made.PollFetches(ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			fmt.Println(string(record.Value))
			done++
		}
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	given := os.Args[3:]
	switch os.Args[2] {
	case "send":
		send(ctx, given[0], given[1])
	case "fence":
		fence(ctx, given[0], given[1])
	case "transform":
		count, err := strconv.Atoi(given[4])
		check(err)
		transform(ctx, given[0], given[1], given[2], given[3], count)
	case "read":
		count, err := strconv.Atoi(given[1])
		check(err)
		read(ctx, given[0], count)
	default:
		check(fmt.Errorf("%s is none of send, fence, transform and read", os.Args[2]))
	}
}
