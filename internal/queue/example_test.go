package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/queue"
)

// A handler looks at its record first, does the work, and says what is to become of the wake-up.
func ExampleHandler() {
	deliver := func(ctx context.Context, t queue.Task) queue.Verdict {
		record, err := load(ctx, string(t.Payload))
		switch {
		case err != nil:
			return queue.NotNow(time.Now().Add(2 * time.Second))
		case record.finished:
			return queue.Drop()
		case record.attempts > 9:
			return queue.Bury(errors.New("451 4.7.1 greylisted, ten times"))
		}
		return queue.Done()
	}
	fmt.Println(deliver(context.Background(), queue.Task{Queue: queue.Submit, Type: "deliver", ID: "m1.1",
		Payload: []byte("m1")}))
	// Output: drop
}

func ExampleBackoff_Delay() {
	b := queue.Backoff{Base: 5 * time.Second, Factor: 2, Jitter: 0.2}
	for attempt := 1; attempt <= 4; attempt++ {
		fmt.Println(b.Delay(attempt, 0.5)) // 0.5 means no jitter
	}
	// Output:
	// 0s
	// 10s
	// 20s
	// 40s
}

type record struct {
	finished bool
	attempts int
}

func load(context.Context, string) (record, error) { return record{finished: true}, nil }
