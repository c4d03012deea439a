package bench

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
)

// Patience is how long Clean waits for the next beat of a run. On SQLite a beat waits for the only write lock,
// behind many writers.
const Patience = 20 * time.Second

// Leftover is a set of tables that a run made.
type Leftover struct {
	Prefix string    `json:"prefix"`
	Owner  string    `json:"owner"`
	Began  time.Time `json:"began"`
}

// Cleaned is what Clean found.
type Cleaned struct {
	// Removed sets were left by runs that were killed, or that had Config.Keep.
	Removed []Leftover `json:"removed"`
	// AtWork sets belong to runs that still work. Clean does not touch them.
	AtWork []Leftover `json:"at_work"`
}

// Clean removes the tables of runs that have ended. A run has ended if its marker gets no beat for the patience
// given. waiting, if set, is called with the number of sets before Clean waits for beats.
func Clean(
	ctx context.Context, url string, cfg rowfeed.Config, patience time.Duration, waiting func(sets int),
) (Cleaned, error) {
	c := Cleaned{Removed: []Leftover{}, AtWork: []Leftover{}}
	db, err := openDatabase(ctx, url, cfg.Schema, nil)
	if err != nil {
		return c, err
	}
	defer db.pool.Close()
	sets, err := leftSets(ctx, db)
	if err != nil || len(sets) == 0 {
		return c, err
	}
	if waiting != nil {
		waiting(len(sets))
	}
	if err := awaitBeats(ctx, sets, patience); err != nil {
		return c, err
	}
	for _, set := range sets {
		switch {
		case set.gone:
			continue
		case set.alive:
			c.AtWork = append(c.AtWork, set.leftover())
			continue
		}
		if err := set.tables.remove(ctx); err != nil {
			return c, err
		}
		c.Removed = append(c.Removed, set.leftover())
	}
	return c, nil
}

// leftSet is a set of tables whose run may have ended.
type leftSet struct {
	tables *tables
	marker markerRow
	alive  bool // its run still works
	gone   bool // its run has removed it meanwhile
}

func (s *leftSet) leftover() Leftover {
	l := Leftover{Prefix: s.tables.prefix, Owner: s.marker.owner}
	if s.marker.began != 0 {
		l.Began = time.UnixMicro(s.marker.began).UTC()
	}
	return l
}

// leftSets returns the sets of the schema. A set has a marker with the columns that a run gives it.
func leftSets(ctx context.Context, db *database) (sets []*leftSet, err error) {
	all, err := db.objects(ctx, stem)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		prefix := prefixPattern.FindString(o.name)
		if prefix == "" || o.name != prefix+marker {
			continue
		}
		set := &leftSet{tables: &tables{db: db, prefix: prefix}}
		found := false
		if set.marker, found, err = set.tables.readMarker(ctx); err != nil {
			return nil, err
		}
		if found {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *leftSet) int { return strings.Compare(a.tables.prefix, b.tables.prefix) })
	return sets, nil
}

// awaitBeats reads the markers until each has a new beat, or the patience is over.
func awaitBeats(ctx context.Context, sets []*leftSet, patience time.Duration) error {
	for over := time.Now().Add(patience); ; {
		silent := false
		for _, s := range sets {
			if s.alive || s.gone {
				continue
			}
			now, found, err := s.tables.readMarker(ctx)
			if err != nil {
				return err
			}
			s.gone, s.alive = !found, found && s.marker.beats != now.beats
			if found && now.beats >= 0 {
				s.marker = now
			}
			silent = silent || !s.gone && !s.alive
		}
		if !silent || !time.Now().Before(over) {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
