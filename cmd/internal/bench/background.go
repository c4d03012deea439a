package bench

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed"
)

type handler = func(context.Context, *sql.Tx, []rowfeed.Entry) error

// background is a publisher, and possibly a consumer, that run while something is measured.
type background struct {
	cancel  context.CancelFunc
	ended   chan error
	running int
}

// startBackground starts a feed's publisher and, if handle is not nil, a consumer of the feed.
func startBackground(ctx context.Context, db *rowfeed.DB, f *rowfeed.Feed, handle handler) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, ended: make(chan error, 2), running: 1}
	go func() { b.ended <- f.RunPublisher(ctx) }()
	if handle != nil {
		b.running++
		consumer := &rowfeed.Consumer{Name: "bench", Source: f, DB: db, Handle: handle}
		go func() { b.ended <- consumer.Run(ctx) }()
	}
	return b
}

// stop ends the publisher and the consumer, and returns their errors.
func (b *background) stop() (err error) {
	b.cancel()
	for range b.running {
		err = errors.Join(err, <-b.ended)
	}
	b.running = 0
	return err
}

// endedEarly is the error of a publisher or a consumer that ended before stop. If ctx has ended, it is that of ctx.
func (b *background) endedEarly(ctx context.Context, err error) error {
	b.running--
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = errors.New("bench: the publisher or the consumer has stopped by itself")
	}
	return err
}

// run lets the publisher and the consumer work for a time.
func (b *background) run(ctx context.Context, d time.Duration) error {
	timed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-timed.Done():
		return ctx.Err()
	case err := <-b.ended:
		return b.endedEarly(ctx, err)
	}
}

// await waits until everything has been delivered. It gives up if nothing arrives within deliveryTimeout.
func (b *background) await(ctx context.Context, d *deliveries) error {
	t := time.NewTicker(deliveryTimeout)
	defer t.Stop()
	for before := -1; ; {
		select {
		case <-d.all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-b.ended:
			return b.endedEarly(ctx, err)
		case <-t.C:
		}
		missing := d.missingNow()
		if missing == before {
			return wrongFigures("%d of %d rows have not reached the handler, and none has for %s",
				missing, len(d.at), deliveryTimeout)
		}
		before = missing
	}
}
