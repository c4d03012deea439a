package peers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPeer is River: a job is inserted in the user's transaction. Jobs run concurrently, in no guaranteed order.
var riverPeer = contestant{name: "river", families: []string{
	"postgres",
}, message: true, configurations: []configuration{
	{"default", "100 workers as in River's examples, at most ten fetches a second",
		riverWith(riverSettings{workers: 100})},
	{"tuned-1", "1,000 workers, a fetch every millisecond",
		riverWith(riverSettings{workers: 1000, cooldown: time.Millisecond, poll: 10 * time.Millisecond})},
	{"tuned-2", "200 workers, a fetch every 5 ms",
		riverWith(riverSettings{workers: 200, cooldown: 5 * time.Millisecond, poll: 50 * time.Millisecond})},
	{"tuned-3", "as many workers as River allows, a fetch every millisecond",
		riverWith(riverSettings{workers: 10_000, cooldown: time.Millisecond, poll: 10 * time.Millisecond})},
	{"tuned-4", "100 workers, a fetch every millisecond",
		riverWith(riverSettings{workers: 100, cooldown: time.Millisecond, poll: 10 * time.Millisecond})},
	{"fast", "as tuned-1, jobs inserted by COPY, which answers nothing of them",
		riverWith(riverSettings{workers: 1000, cooldown: time.Millisecond, poll: 10 * time.Millisecond, fast: true})},
	{"poll-only", "as tuned-1, no LISTEN and NOTIFY", riverWith(riverSettings{workers: 1000, cooldown: time.Millisecond,
		poll: 10 * time.Millisecond, pollOnly: true})},
}}

// riverSettings are the settings that differ from the defaults.
type riverSettings struct {
	workers  int           // QueueConfig.MaxWorkers
	cooldown time.Duration // Config.FetchCooldown
	poll     time.Duration // Config.FetchPollInterval
	pollOnly bool
	fast     bool // InsertManyFastTx instead of InsertTx
}

func riverWith(s riverSettings) func() peer {
	return func() peer { return &riverRun{riverSettings: s} }
}

type riverRun struct {
	riverSettings
	client *river.Client[pgx.Tx]
	handle atomic.Pointer[handler]
}

type riverItem struct {
	Payload string `json:"payload"`
}

func (riverItem) Kind() string { return "item" }

func (r *riverRun) begin(c *cell) {
	driver := riverpgxv5.New(c.users.postgres)
	migrator, err := rivermigrate.New(driver, nil)
	c.Must(err)
	_, err = migrator.Migrate(c.Context(), rivermigrate.DirectionUp, nil)
	c.Must(err)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverItem]) error {
		(*r.handle.Load())(job.Args.Payload)
		return nil
	}))
	r.client, err = river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.workers}},
		Workers:           workers,
		FetchCooldown:     r.cooldown,
		FetchPollInterval: r.poll,
		PollOnly:          r.pollOnly,
		Logger:            slog.New(slog.NewTextHandler(riverLog{c}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	c.Must(err)
}

func (r *riverRun) record(ctx context.Context, tx userTx, payloads []string) error {
	if len(payloads) == 1 && !r.fast {
		_, err := r.client.InsertTx(ctx, tx.(pgxTx).Tx, riverItem{payloads[0]}, nil)
		return err
	}
	jobs := make([]river.InsertManyParams, len(payloads))
	for i, text := range payloads {
		jobs[i].Args = riverItem{text}
	}
	_, err := r.client.InsertManyFastTx(ctx, tx.(pgxTx).Tx, jobs)
	return err
}

func (r *riverRun) run(ctx context.Context, handle handler) error {
	r.handle.Store(&handle)
	unended := context.WithoutCancel(ctx)
	if err := r.client.Start(unended); err != nil {
		return err
	}
	<-ctx.Done()
	return r.client.Stop(unended) // running jobs end first
}

func (r *riverRun) end(context.Context) error { return nil }

// riverLog shows what River logs as errors.
type riverLog struct{ *cell }

func (l riverLog) Write(line []byte) (int, error) {
	l.Logf("River: %s", line)
	return len(line), nil
}
