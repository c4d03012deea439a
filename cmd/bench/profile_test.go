package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestProfile shows where the time of a pass of 1000 republished keys is spent: in each statement, and in the client
// between two statements (reading rows, and rowfeed's own work).
func TestProfile(t *testing.T) {
	out := table{Title: "A pass of 1000 keys, ms",
		Head: []string{"database", "statement", "answered after", "then in the client", "share"}}
	each(t, func(b *bed) {
		b.fill("items", scaled(100_000))
		var clock stopwatch
		pool := b.OpenTapped(b.T, clock.hooks())
		p := b.passes(pool, 1000)
		f := b.Feed(p.db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		p.drain(f)
		var took time.Duration
		passes := 0
		clock.reset()
		for range *reps {
			clock.running = false
			_, err := f.Admin().RepublishWhere(b.Context(), "", 10_000, nil)
			b.Must(err)
			clock.running, clock.last = true, nil
			keys, t := p.drain(f)
			passes += (keys + 999) / 1000
			took += t
		}
		per := func(d time.Duration) string { return fmt.Sprintf("%.2f", milliseconds(d)/float64(passes)) }
		for _, s := range clock.order {
			out.Row(b.Engine.Name, s.name, per(s.server), per(s.client),
				fmt.Sprintf("%.0f %%", 100*float64(s.server+s.client)/float64(took)))
		}
		out.Row(b.Engine.Name, "all", per(took), "", "")
	})
	out.Print()
}

// stopwatch adds up the times of statements by their first words.
type stopwatch struct {
	running bool
	spans   map[string]*span
	order   []*span
	last    *span
	at      time.Time // when the last statement was sent, or answered
}

type span struct {
	name           string
	server, client time.Duration
}

func (s *stopwatch) reset() { s.spans, s.order, s.last = map[string]*span{}, nil, nil }

func (s *stopwatch) hooks() testdb.Hooks {
	return testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			if s.running {
				if now := time.Now(); s.last != nil {
					s.last.client += now.Sub(s.at)
				}
				s.at = time.Now()
			}
			return nil
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if s.running {
				now := time.Now()
				s.last = s.span(ev)
				s.last.server += now.Sub(s.at)
				s.at = now
			}
			return err
		},
	}
}

// span returns the span of an event: its kind, or the statement's first words and its table.
func (s *stopwatch) span(ev testdb.TapEvent) *span {
	name := ev.Kind.String()
	if ev.SQL != "" {
		words := strings.Fields(ev.SQL)
		name = strings.Join(words[:min(2, len(words))], " ")
		if strings.Contains(ev.SQL, "WHERE 0") || strings.Contains(ev.SQL, "SET LOCAL") {
			name = "settings: " + name
		}
		for _, table := range []string{"sequences", "changes", "positions"} {
			if strings.Contains(ev.SQL, "rowfeed_"+table) {
				name += " … " + table
			}
		}
		name = "`" + strings.ReplaceAll(name, "`", "") + "`"
	}
	if s.spans[name] == nil {
		s.spans[name] = &span{name: name}
		s.order = append(s.order, s.spans[name])
	}
	return s.spans[name]
}
