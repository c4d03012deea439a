package rowfeed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// Status is how a feed stands.
type Status struct {
	Name            string     `json:"name"`
	Mode            string     `json:"mode"`
	State           string     `json:"state"`
	Capture         string     `json:"capture"`
	Table           string     `json:"table"`
	Generation      int64      `json:"generation"`
	Head            int64      `json:"head"`
	PublishedAt     *time.Time `json:"published_at"`    // when the head was last advanced
	Waiting         int64      `json:"changes_waiting"` // up to MaxWaiting; of a feed with an outbox its records
	OldestSeconds   float64    `json:"oldest_seconds"`  // age of the oldest change waiting
	TombstonesBelow int64      `json:"tombstones_below"`
	// Vanished counts keys whose rows are gone without a delete; nil when counting took
	// too long (Check tells).
	Vanished *int64 `json:"vanished"`
	// Publisher is the lease through which publishers take turns; nil while none has it.
	Publisher *LeaseStatus `json:"publisher"`
	// Shards are those of a feed with ULIDs, in ascending order, and HoldersTold says how much of
	// who has them the database tells; "" for other feeds.
	Shards      []ShardStatus `json:"shards"`
	HoldersTold string        `json:"holders_told"`
	Blockers    []Blocker     `json:"blockers"`
	Problems    []string      `json:"problems"`
	// Consumers are those whose cursors are in this database, with how far they are behind.
	Consumers []ConsumerStatus `json:"consumers"`
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session    string  `json:"session"`
	User       string  `json:"user"`
	Host       string  `json:"host"`
	AgeSeconds float64 `json:"age_seconds"`
	Statement  string  `json:"statement"`
	Scope      string  `json:"scope"` // what is known of it
}

const (
	// MaxWaiting bounds the count of changes waiting.
	MaxWaiting = 1_000_000
	// vanishedBudget bounds the count of vanished rows, which reads the whole feed.
	vanishedBudget = 2 * time.Second
)

// Status tells how the feed stands, and who holds it up.
func (f *Feed) Status(ctx context.Context) (*Status, error) {
	unread := f.reload(ctx)
	if unread != nil && !errors.Is(unread, errUnreadable) {
		return nil, unread
	}
	r, feed := f.record.Load(), f.dialectFeed()
	s := &Status{Name: r.Name, Mode: r.Mode, State: r.State, Capture: string(r.Capture), Table: r.Source.String(),
		Generation: r.Generation, TombstonesBelow: r.TombstonesBelow, Shards: []ShardStatus{}, Blockers: []Blocker{}, Problems: []string{}}
	fail := func(doing string, err error) (*Status, error) { return nil, f.db.fail(feedObject(f.name), doing, err) }
	if unread != nil {
		s.Problems = append(s.Problems, unread.Error())
		return s, nil
	}

	if err := f.mode().status(ctx, f, s); err != nil {
		return nil, err
	}
	publisher, err := f.db.lookAtLease(ctx, f.db.on(), PublisherLease(f.name))
	if err != nil {
		return fail("look who publishes", err)
	}
	if publisher.held() {
		s.Publisher = publisher
	}
	blockers, err := f.db.d.Blockers(ctx, f.db.on(), feed)
	if err != nil && f.db.d.Classify(err) != dialect.ClassUndefined {
		return fail("look for open transactions", err)
	}
	for _, x := range blockers {
		if slices.ContainsFunc(s.Blockers, func(known Blocker) bool { return known.Session == x.Session }) {
			continue // of whom more is known
		}
		s.Blockers = append(s.Blockers, Blocker{x.Session, x.User, x.Host, seconds(x.AgeMicros), x.Statement, x.Scope})
	}
	problems, err := f.Verify(ctx)
	if err != nil {
		problems = []string{err.Error()}
	}
	if identity, err := f.db.d.Identity(ctx, f.db.on(), f.db.names); err == nil {
		if err := sameDatabase(r, identity); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if parts, err := f.VerifyParts(ctx); err == nil && parts != "" {
		problems = append(problems, parts)
	}
	s.Problems = append(s.Problems, problems...)
	if r.State == stateSharding {
		s.Problems = append(s.Problems, "parts of it are not served: "+finishSharding(f.name, r.DataShards))
	}
	if s.Consumers, err = f.db.Consumers(ctx, ConsumerID{Feed: f.name}); err != nil {
		return fail("read its consumers' cursors", err)
	}
	return s, nil
}

func seconds(micros int64) float64 {
	return (time.Duration(micros) * time.Microsecond).Seconds()
}
