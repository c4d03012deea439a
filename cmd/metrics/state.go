package metrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// state collects the state of the database. One goroutine at a time reads it, whatever the number of scrapes. A
// scrape waits for at most Config.Patience.
type state struct {
	cfg Config

	mu      sync.Mutex
	ctx     context.Context // context of the readings
	db      *rowfeed.DB     // nil before Watch
	last    *reading        // the last reading that succeeded, or nil
	up      bool            // whether the last reading succeeded
	took    time.Duration   // duration of the last reading
	began   time.Time       // start of the last reading
	pending chan struct{}   // closed when the current reading ends; nil if there is none
}

// stale is the maximum age of a reading that is still shown, unless Config.Every is longer.
const stale = time.Minute

// reading is what was read from a database.
type reading struct {
	at        time.Time
	feeds     []feedState
	consumers []admin.ConsumerStatus
	failing   []admin.Failing
	leases    []*rowfeed.LeaseStatus
}

type feedState struct {
	name string
	admin.Backlog
	numbered bool // positions are numbers, and the feed has one head
	ages     bool // the age of pending changes is known
	waits    bool // pending changes are possible
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("rowfeed_"+name, help, labels, nil)
}

// The metrics of the state.
var (
	descUp = desc("up", "1 if the database answered when its state was last read, else 0. "+
		"Then the last known state is shown for a minute.")
	descAge     = desc("state_age_seconds", "Age of the state that is shown.")
	descTook    = desc("state_read_seconds", "How long it took to read the state, also if that failed.")
	descPending = desc("pending_changes",
		"Pending changes, or records of an outbox, up to the number that is counted.",
		"feed")
	descOldest = desc("pending_oldest_seconds",
		"Age of the oldest pending change; 0 if none is pending. Missing for feeds with capture column.", "feed")
	descHead = desc("head_position",
		"The feed's highest position. Missing for feeds with ULIDs, whose shards have one each.", "feed")
	descSince   = desc("head_timestamp_seconds", "When the head last moved, in Unix time.", "feed")
	descReaders = desc("waiting_readers", "Requests that wait for an entry at this process.", "feed")
	descQuota   = desc("connections_limit", "Connections that this process may use for the work at the same time.",
		"work")
	descInUse   = desc("connections_in_use", "Connections that this process uses for the work now.", "work")
	descRefused = desc("locked_table_refusals_total",
		"Pages and publications that were refused without a connection, because their table stayed locked.", "work")
	descBehind = desc("consumer_lag_entries",
		"Positions between a consumer's cursor and the feed's head, "+
			"an upper limit of its entries: positions of other shards count. Missing for feeds with ULIDs.",
		"consumer", "feed", "shard")
	descSeconds = desc("consumer_lag_seconds",
		"Age of the oldest entry that a consumer has not handled; 0 at the head.", "consumer", "feed", "shard")
	descPaused = desc("consumer_paused_shards", "Shards of a consumer that an operator has paused.", "consumer",
		"feed")
	descFailing = desc("failing", "1 if the publisher of the feed, or a shard of the consumer, keeps failing; else 0. "+
		"The label consumer is empty for a publisher.", "feed", "consumer")
	descFailingFor = desc("failing_seconds",
		"Time since the first failed attempt, of what keeps failing; else 0.", "feed", "consumer")
	descAttempts = desc("failing_attempts", "Attempts that have failed in a row.", "feed",
		"consumer")
	descLetters = desc("dead_letters", "Keys that a consumer has set aside, and that wait for retry or drop.",
		"consumer", "feed")
	descLeases = desc("leases",
		"Leases that are held, or that their holder has not renewed (expired), by purpose.", "kind", "state")
	descEpochs = desc("lease_epochs_total",
		"Claims ever made on leases, in all processes, by the purpose of the lease.", "kind")
	descFolded = desc("folded_series", "Consumers' shards without a series of their own, because there are too many.")

	descs = []*prometheus.Desc{descUp, descAge, descTook, descPending, descOldest, descHead, descSince, descReaders,
		descQuota, descInUse, descRefused,
		descBehind, descSeconds,
		descPaused, descFailing, descFailingFor, descAttempts, descLetters, descLeases, descEpochs, descFolded}
)

func newState(cfg Config) *state { return &state{cfg: cfg} }

func (s *state) watch(ctx context.Context, db *rowfeed.DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.db, s.last, s.up, s.began = ctx, db, nil, false, time.Time{}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	if end := s.refresh(); end != nil {
		patience := time.NewTimer(s.cfg.Patience)
		select {
		case <-end:
		case <-patience.C:
		}
		patience.Stop()
	}
	s.mu.Lock()
	db, last, up, took := s.db, s.last, s.up && !s.hangs(), s.took
	s.mu.Unlock()
	if db == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(descUp, number(up))
	gauge(descTook, took.Seconds())
	names := &names{most: s.cfg.MaxNames}
	waiting := map[string]float64{}
	for feed, n := range db.Admin().Readers() {
		waiting[names.of(feed)] += float64(n)
	}
	if last != nil && time.Since(last.at) < max(stale, 2*s.cfg.Every) {
		for _, f := range last.feeds { // so that feeds without waiting requests show 0
			waiting[names.of(f.name)] += 0
		}
		gauge(descAge, time.Since(last.at).Seconds())
		last.report(s.cfg, gauge)
		for kind, n := range last.epochs() {
			ch <- prometheus.MustNewConstMetric(descEpochs, prometheus.CounterValue, n, kind)
		}
	}
	for feed, n := range waiting {
		gauge(descReaders, n, feed)
	}
	for _, q := range db.Admin().Quotas() {
		gauge(descQuota, float64(q.Limit), q.Work)
		gauge(descInUse, float64(q.InUse), q.Work)
		ch <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(q.Refused), q.Work)
	}
}

// hangs tells whether the current reading takes longer than Config.Patience. s.mu is held.
func (s *state) hangs() bool { return s.pending != nil && time.Since(s.began) > s.cfg.Patience }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// refresh begins a reading unless the last one is recent enough. It returns the channel that is closed when the
// current reading ends, or nil.
func (s *state) refresh() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil || s.db == nil || s.ctx.Err() != nil || !s.began.IsZero() && time.Since(s.began) < s.cfg.Every {
		return s.pending
	}
	end := make(chan struct{})
	s.began, s.pending = time.Now(), end
	ctx, db := s.ctx, s.db
	go func() {
		defer close(end)
		bounded, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		found, err := read(bounded, db, s.cfg)
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pending = nil
		if s.db != db {
			return // Watch was called with another database meanwhile
		}
		s.took, s.up = time.Since(s.began), err == nil
		if err == nil {
			s.last = found
		}
	}()
	return end
}

// read queries the database. It leaves out a feed that cannot be read (its table may be gone): the other feeds are
// still useful, and readiness reports it.
func read(ctx context.Context, db *rowfeed.DB, cfg Config) (*reading, error) {
	r := &reading{at: time.Now()}
	feeds, err := db.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range feeds {
		b, err := f.Admin().Backlog(ctx, cfg.MaxBacklog)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue
		}
		r.feeds = append(r.feeds, feedState{name: f.Name(), Backlog: b, numbered: f.Mode() == rowfeed.ModeSequence,
			ages: f.Capture() != feedtype.CaptureColumn, waits: f.Mode() != rowfeed.ModeBlocking})
	}
	if r.consumers, err = db.Admin().Consumers(ctx, rowfeed.ConsumerID{}); err != nil {
		return nil, err
	}
	if r.failing, err = db.Admin().Failing(ctx); err != nil {
		return nil, err
	}
	if r.leases, err = db.Admin().Leases(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// report passes the values of a reading to gauge.
func (r *reading) report(cfg Config, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	for i, f := range r.feeds {
		if i == cfg.MaxNames {
			break // sums over several feeds would be meaningless
		}
		if f.waits {
			gauge(descPending, float64(f.Waiting), f.name)
		}
		if f.waits && f.ages {
			gauge(descOldest, f.OldestSeconds, f.name)
		}
		if f.numbered {
			gauge(descHead, float64(f.Head), f.name)
		}
		if f.PublishedAt != nil {
			gauge(descSince, float64(f.PublishedAt.UnixMicro())/1e6, f.name)
		}
	}
	r.tellConsumers(cfg, gauge)
	r.tellFailing(cfg, gauge)
	states := map[[2]string]float64{}
	for _, l := range r.leases {
		if l.State != rowfeed.LeaseFree {
			states[[2]string{leaseKind(l.Name), l.State}]++
		}
	}
	for _, kind := range leaseKinds {
		for _, state := range []string{rowfeed.LeaseHeld, rowfeed.LeaseExpired} {
			gauge(descLeases, states[[2]string{kind, state}], kind, state)
		}
	}
}

// epochs returns the sums of the leases' epochs, which only grow, because the rows of leases are kept.
func (r *reading) epochs() map[string]float64 {
	sums := map[string]float64{}
	for _, l := range r.leases {
		sums[leaseKind(l.Name)] += float64(l.Epoch)
	}
	return sums
}

// consumer identifies a consumer of a feed.
type consumer struct{ name, feed string }

// lag is how far a shard is behind, or the maximum of several shards. Unknown values are nil.
type lag struct{ entries, seconds *float64 }

func (l *lag) worse(entries *int64, seconds *float64) {
	if entries != nil {
		n := float64(*entries)
		l.entries = worst(l.entries, &n)
	}
	l.seconds = worst(l.seconds, seconds)
}

func worst(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// tellConsumers shows the shards that are furthest behind separately.
func (r *reading) tellConsumers(cfg Config, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	shards := slices.Clone(r.consumers)
	slices.SortStableFunc(shards, func(a, b admin.ConsumerStatus) int {
		return cmp.Or(cmp.Compare(amount(b.BehindSeconds), amount(a.BehindSeconds)),
			cmp.Compare(amount(b.Behind), amount(a.Behind)))
	})
	known := &names{most: cfg.MaxNames}
	type series struct {
		consumer
		shard string
	}
	lags := map[series]*lag{}
	paused, letters := map[consumer]float64{}, map[consumer]float64{}
	folded := 0
	for i, s := range shards {
		who, shard := consumer{s.Consumer, s.Feed}, strconv.Itoa(s.Shard)
		if known.of(s.Consumer+" of "+s.Feed) == Others {
			who = consumer{Others, Others}
		}
		if i >= cfg.MaxShards || who.name == Others {
			shard = Others
			folded++
		}
		at := series{who, shard}
		if lags[at] == nil {
			lags[at] = &lag{}
		}
		lags[at].worse(s.Behind, s.BehindSeconds)
		paused[who] += number(s.Paused)
		letters[who] += float64(s.DeadLetters)
	}
	for at, l := range lags {
		if l.entries != nil {
			gauge(descBehind, *l.entries, at.name, at.feed, at.shard)
		}
		if l.seconds != nil {
			gauge(descSeconds, *l.seconds, at.name, at.feed, at.shard)
		}
	}
	for who := range paused {
		gauge(descPaused, paused[who], who.name, who.feed)
		gauge(descLetters, letters[who], who.name, who.feed)
	}
	gauge(descFolded, float64(folded))
}

// tellFailing shows publishers and consumers that fail. Of several shards it shows the one that has failed longest.
func (r *reading) tellFailing(cfg Config, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	known := &names{most: cfg.MaxNames}
	type worst struct{ fails, seconds, attempts float64 }
	all := map[consumer]*worst{}
	of := func(name, feed string) *worst {
		who := consumer{name, feed}
		if known.of(name+" of "+feed) == Others {
			who = consumer{Others, Others}
		}
		if all[who] == nil {
			all[who] = &worst{}
		}
		return all[who]
	}
	for _, f := range r.feeds {
		of("", f.name)
	}
	for _, c := range r.consumers {
		of(c.Consumer, c.Feed)
	}
	for _, f := range r.failing {
		w := of(f.Consumer, f.Feed)
		w.fails = 1
		w.seconds = max(w.seconds, time.Since(f.Since).Seconds())
		w.attempts = max(w.attempts, float64(f.Attempts))
	}
	for who, w := range all {
		gauge(descFailing, w.fails, who.feed, who.name)
		gauge(descFailingFor, w.seconds, who.feed, who.name)
		gauge(descAttempts, w.attempts, who.feed, who.name)
	}
}

func amount[N int64 | float64](n *N) N {
	if n == nil {
		return -1
	}
	return *n
}
