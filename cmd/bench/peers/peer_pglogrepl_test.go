package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pglogreplPeer is logical replication, read as in pglogrepl's example. Writers write nothing more. The server decodes
// its log, and keeps the log while the slot has no reader.
var pglogreplPeer = contestant{name: "pglogrepl", families: []string{"postgres"}, configurations: []configuration{
	{"default", "as in pglogrepl's example: the position is reported to the server every 10 s",
		pglogreplWith(pglogreplSettings{confirm: 10 * time.Second})},
	{"tuned-1", "values as bytes, position reported every second",
		pglogreplWith(pglogreplSettings{confirm: time.Second, binary: true})},
	{"tuned-2", "as tuned-1, one context for all messages until the next report",
		pglogreplWith(pglogreplSettings{confirm: time.Second, binary: true, oneContext: true})},
	{"tuned-3", "as tuned-2, position reported every 100 ms, so that little is repeated after a crash",
		pglogreplWith(pglogreplSettings{confirm: 100 * time.Millisecond, binary: true, oneContext: true})},
	{"beside", "as tuned-2, rows are handled in another goroutine than the one that reads", pglogreplWith(
		pglogreplSettings{confirm: time.Second, binary: true, oneContext: true, workers: 1, ahead: 10_000},
	)},
	{"workers-8", "as beside, eight goroutines that share the writers", pglogreplWith(pglogreplSettings{
		confirm: time.Second, binary: true, oneContext: true, workers: 8, ahead: 10_000,
	})},
}}

type pglogreplSettings struct {
	confirm    time.Duration // how often the server learns what was handled
	binary     bool          // the plug-in's option
	oneContext bool
	workers    int // goroutines that handle rows; 0: the one that reads them
	ahead      int // rows read ahead for each of them
}

func pglogreplWith(s pglogreplSettings) func() peer {
	return func() peer { return &pglogreplRun{pglogreplSettings: s} }
}

type pglogreplRun struct {
	pglogreplSettings
	url, slot string
	handled   atomic.Uint64 // all transactions up to this position of the log were handled
	within    bool          // the last message was in the middle of a transaction
}

func (p *pglogreplRun) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, p.url+"&replication=database")
}

func (p *pglogreplRun) begin(c *cell) {
	p.url, p.slot = c.URL, "bench_"+c.Name
	c.SQL("CREATE PUBLICATION bench FOR TABLE items WITH (publish = 'insert')")
	conn, err := p.connect(c.Context())
	c.Must(err)
	defer conn.Close(context.Background())
	_, err = pglogrepl.CreateReplicationSlot(c.Context(), conn, p.slot, "pgoutput",
		pglogrepl.CreateReplicationSlotOptions{})
	c.Must(err)
}

// record does nothing: the server's log has the row.
func (p *pglogreplRun) record(context.Context, userTx, []string) error { return nil }

func (p *pglogreplRun) end(ctx context.Context) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return pglogrepl.DropReplicationSlot(ctx, conn, p.slot, pglogrepl.DropReplicationSlotOptions{Wait: true})
}

func (p *pglogreplRun) run(ctx context.Context, handle handler) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer conn.Close(context.Background())
	arguments := []string{"proto_version '1'", "publication_names 'bench'"}
	if p.binary {
		arguments = append(arguments, "binary 'true'")
	}
	if err := pglogrepl.StartReplication(ctx, conn, p.slot, 0,
		pglogrepl.StartReplicationOptions{PluginArgs: arguments}); err != nil {
		return unlessEnded(ctx, err)
	}
	row, committed, wait := (func(string))(handle), func(at pglogrepl.LSN) { p.handled.Store(uint64(at)) }, func() {}
	if p.workers > 0 {
		b := p.besides(handle)
		row, committed, wait = b.row, b.committed, b.wait
	}
	err = p.receive(ctx, conn, row, committed)
	wait()
	if err == nil {
		err = p.report(context.Background(), conn)
	}
	return unlessEnded(ctx, err)
}

// besides are goroutines that handle rows, and know which transactions have been handled completely. The rows of a
// writer always have the same goroutine.
type besides struct {
	*pglogreplRun
	queues  []chan step
	running sync.WaitGroup

	reading *transaction // the transaction whose rows are being received

	mu    sync.Mutex
	ended []*transaction // transactions that were received, in their order, with rows that were not handled yet
}

type step struct {
	text string
	of   *transaction
}

type transaction struct {
	end  pglogrepl.LSN
	left atomic.Int64 // rows that were not handled, plus one until the end was received
}

func newTransaction() *transaction {
	t := &transaction{}
	t.left.Store(1)
	return t
}

func (p *pglogreplRun) besides(handle handler) *besides {
	b := &besides{pglogreplRun: p, queues: make([]chan step, p.workers), reading: newTransaction()}
	for i := range b.queues {
		queue := make(chan step, p.ahead)
		b.queues[i] = queue
		b.running.Go(func() {
			for s := range queue {
				handle(s.text)
				b.done(s.of)
			}
		})
	}
	return b
}

func (b *besides) row(text string) {
	writer, _ := rowOf(text)
	b.reading.left.Add(1)
	b.queues[writer%len(b.queues)] <- step{text, b.reading}
}

func (b *besides) committed(at pglogrepl.LSN) {
	t := b.reading
	t.end, b.reading = at, newTransaction()
	b.mu.Lock()
	b.ended = append(b.ended, t)
	b.mu.Unlock()
	b.done(t)
}

// done computes up to which position all transactions have been handled.
func (b *besides) done(t *transaction) {
	if t.left.Add(-1) > 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.ended) > 0 && b.ended[0].left.Load() == 0 {
		b.handled.Store(uint64(b.ended[0].end))
		b.ended = b.ended[1:]
	}
}

// wait ends the goroutines when all rows that were received have been handled.
func (b *besides) wait() {
	for _, queue := range b.queues {
		close(queue)
	}
	b.running.Wait()
}

// receive reads messages until ctx ends, and reports its position to the server regularly.
func (p *pglogreplRun) receive(
	ctx context.Context, conn *pgconn.PgConn, row func(string), committed func(pglogrepl.LSN),
) error {
	for {
		err := p.receiveFor(ctx, conn, row, committed)
		if err == nil && ctx.Err() == nil {
			err = p.report(ctx, conn)
		}
		if err != nil || ctx.Err() != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// receiveFor reads messages until it is time to report, or the server asks.
func (p *pglogreplRun) receiveFor(
	ctx context.Context, conn *pgconn.PgConn, row func(string), committed func(pglogrepl.LSN),
) error {
	until, cancel := context.WithTimeout(ctx, p.confirm)
	defer cancel()
	for {
		received, err := p.next(until, conn)
		switch {
		case until.Err() != nil || pgconn.Timeout(err):
			if received == nil {
				return nil
			}
		case err != nil:
			return err
		}
		switch m := received.(type) {
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyData:
			if asked, err := p.message(m.Data, row, committed); err != nil || asked {
				return err
			}
		}
	}
}

func (p *pglogreplRun) next(until context.Context, conn *pgconn.PgConn) (pgproto3.BackendMessage, error) {
	if !p.oneContext {
		deadline, _ := until.Deadline()
		own, cancel := context.WithDeadline(until, deadline)
		defer cancel()
		until = own
	}
	return conn.ReceiveMessage(until)
}

// report reports the position to the server, so that it keeps its log no longer than needed.
func (p *pglogreplRun) report(ctx context.Context, conn *pgconn.PgConn) error {
	return pglogrepl.SendStandbyStatusUpdate(ctx, conn,
		pglogrepl.StandbyStatusUpdate{WALWritePosition: pglogrepl.LSN(p.handled.Load())})
}

var errNotText = errors.New("a payload that is no text")

// message processes a message of the server. asked reports whether the server wants a reply.
func (p *pglogreplRun) message(data []byte, row func(string), committed func(pglogrepl.LSN)) (asked bool, err error) {
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		m, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err == nil && !p.within {
			committed(m.ServerWALEnd) // no row of items is before it
		}
		return m.ReplyRequested, err
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return false, err
		}
		m, err := pglogrepl.Parse(x.WALData)
		if err != nil {
			return false, err
		}
		switch m := m.(type) {
		case *pglogrepl.BeginMessage:
			p.within = true
		case *pglogrepl.InsertMessage:
			const payloadColumn = 2
			if len(m.Tuple.Columns) <= payloadColumn {
				return false, errNotText
			}
			row(string(m.Tuple.Columns[payloadColumn].Data))
		case *pglogrepl.CommitMessage:
			p.within = false
			committed(m.TransactionEndLSN)
		}
		return false, nil
	}
	return false, fmt.Errorf("a message of an unknown kind: %q", data[0])
}
