package faults

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// takeOvers measures how long a shard's lease has no living holder, on the database's clock, which is this machine's.
type takeOvers struct {
	leases string // the common beginning of the names of the relay's leases

	mu      sync.Mutex
	claims  map[string]leaseClaim // the latest claim on each lease
	waiting map[string]*vacancy
	times   []vacancy
}

type leaseClaim struct {
	pid   int
	epoch int64
}

// vacancy is a lease whose holder was killed or paused.
type vacancy struct {
	epoch  int64
	from   time.Time
	until  time.Time // valid once another process has the lease
	paused bool
	away   bool // the database was unavailable meanwhile
}

func newTakeOvers(leases string) *takeOvers {
	return &takeOvers{leases: leases, claims: map[string]leaseClaim{}, waiting: map[string]*vacancy{}}
}

// watch reads the leases until ctx ends. It ignores errors: the database is killed now and then.
func (o *takeOvers) watch(ctx context.Context, db *sql.DB) {
	for ctx.Err() == nil {
		o.poll(ctx, db)
		pause(ctx, 10*time.Millisecond)
	}
}

func (o *takeOvers) poll(ctx context.Context, db *sql.DB) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT name, owner, epoch, acquired_at FROM rowfeed_leases WHERE name LIKE '"+
		o.leases+"%' AND name NOT LIKE '%/seat/%' AND owner <> ''")
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var name, owner string
		var epoch, acquired int64
		if rows.Scan(&name, &owner, &epoch, &acquired) != nil {
			return
		}
		parts := strings.Split(owner, "/") // host/pid/random; a group adds more
		if len(parts) < 3 {
			continue
		}
		pid, err := strconv.Atoi(parts[1])
		if err == nil {
			o.seen(name, leaseClaim{pid, epoch}, time.UnixMicro(acquired))
		}
	}
}

func (o *takeOvers) seen(name string, t leaseClaim, acquired time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.claims[name]
	o.claims[name] = t
	v := o.waiting[name]
	if v == nil || t.epoch <= v.epoch {
		return
	}
	delete(o.waiting, name)
	// Of two claims since the last poll only the later is known.
	if t.epoch == v.epoch+1 && last.epoch == v.epoch && acquired.After(v.from) {
		v.until = acquired
		o.times = append(o.times, *v)
	}
}

func (o *takeOvers) measured() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.times)
}

// gone records that a process no longer renews its leases.
func (o *takeOvers) gone(pid int, paused bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, t := range o.claims {
		if t.pid == pid && o.waiting[name] == nil {
			o.waiting[name] = &vacancy{epoch: t.epoch, from: time.Now(), paused: paused}
		}
	}
}

// back records that a paused process continues: a lease without a new holder may be its own again.
func (o *takeOvers) back(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, t := range o.claims {
		if v := o.waiting[name]; v != nil && v.paused && t.pid == pid && v.epoch == t.epoch {
			delete(o.waiting, name)
		}
	}
}

// databaseGone records that no process can take over for now.
func (o *takeOvers) databaseGone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.waiting {
		v.away = true
	}
}

// report formats the distribution, as multiples of the time to live.
func (o *takeOvers) report(ttl time.Duration) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	kinds := map[string][]float64{}
	for _, v := range o.times {
		kind := "after a kill"
		switch {
		case v.away:
			kind = "with the database away meanwhile"
		case v.paused:
			kind = "after a pause began"
		}
		kinds[kind] = append(kinds[kind], float64(v.until.Sub(v.from))/float64(ttl))
	}
	var lines []string
	for kind, all := range kinds {
		slices.Sort(all)
		at := func(share float64) float64 { return all[min(int(share*float64(len(all))), len(all)-1)] }
		lines = append(lines, fmt.Sprintf("take-over %s, as multiples of %s: %d times, median %.2f, p90 %.2f, max %.2f",
			kind, ttl, len(all), at(0.5), at(0.9), at(1)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
