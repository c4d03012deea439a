package lease

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// groupLook is how a group's leases stood at one moment: its own rows alone, whether
// they are held or not.
type groupLook struct {
	asked       time.Time // a moment before that
	seats, Jobs map[int]*feedtype.LeaseStatus
	rows        map[string]*feedtype.LeaseStatus // all of them, by name
}

// Look reads the group's leases by one statement.
func (g *Group) Look(ctx context.Context) (*groupLook, error) {
	prefix := GroupPrefix(g.name, g.jobs)
	b := dialect.NewBuilder(g.store.Dialect)
	asked := time.Now()
	// Names compare by their bytes in every database; '0' is the one behind '/'.
	rows, err := dialect.QueryAll(ctx, g.store.On(), Columns(g.store)+" WHERE name >= "+b.Arg(prefix)+
		" AND name < "+b.Arg(strings.TrimSuffix(prefix, "/")+"0"), b.Args(), Scan)
	if err != nil {
		return nil, err
	}
	l := &groupLook{asked: asked, seats: map[int]*feedtype.LeaseStatus{}, Jobs: map[int]*feedtype.LeaseStatus{},
		rows: map[string]*feedtype.LeaseStatus{}}
	for _, s := range rows {
		l.rows[s.Name] = s
		of, text := l.Jobs, strings.TrimPrefix(s.Name, prefix)
		if seat, ok := strings.CutPrefix(text, "seat/"); ok {
			of, text = l.seats, seat
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < g.jobs && strconv.Itoa(n) == text {
			of[n] = s
		}
	}
	return l, nil
}

// judge tells of terms whether they still hold, and until when.
func (l *groupLook) judge(terms []*Term) {
	for _, t := range terms {
		row := l.rows[t.lease.Name]
		if row == nil || row.Owner != t.owner || row.Epoch != t.epoch || !Held(row) {
			t.lose("it has expired, or somebody else has acquired or released it")
			continue
		}
		left := time.Duration(row.ExpiresInSeconds * float64(time.Second))
		_ = t.extend(l.asked.Add(left - t.lease.TTL))
	}
}

// free lists those of n leases that nobody holds.
func free(rows map[int]*feedtype.LeaseStatus, n int) (numbers []int) {
	for i := range n {
		if s := rows[i]; s == nil || !Held(s) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// instanceOf is the part of a lease's owner that all terms of a group's member share.
func instanceOf(owner string) string { return owner[:max(0, strings.LastIndexByte(owner, '/'))] }

// share is the number of jobs that a member is to have, and its place among all that have
// a seat. Whoever has more jobs comes first, so that as few as possible change hands, and
// the seat decides between equals: all who see the same come to the same result, and
// where it is reached nothing moves.
func (l *groupLook) share(jobs int, instance string) (share, place, members int) {
	type standing struct {
		instance  string
		has, seat int
	}
	var all []standing
	of := func(owner string) int {
		return slices.IndexFunc(all, func(s standing) bool { return s.instance == instanceOf(owner) })
	}
	for _, seat := range slices.Sorted(maps.Keys(l.seats)) {
		// One that has lost a seat and taken another has two until the first runs out.
		if s := l.seats[seat]; Held(s) && of(s.Owner) < 0 {
			all = append(all, standing{instance: instanceOf(s.Owner), seat: seat})
		}
	}
	for _, s := range l.Jobs {
		if i := of(s.Owner); Held(s) && i >= 0 {
			all[i].has++
		}
	}
	slices.SortFunc(all, func(a, b standing) int {
		if a.has != b.has {
			return b.has - a.has
		}
		return a.seat - b.seat
	})
	place = slices.IndexFunc(all, func(s standing) bool { return s.instance == instance })
	if place < 0 {
		return 0, 0, len(all)
	}
	share = jobs / len(all)
	if place < jobs%len(all) {
		share++
	}
	return share, place, len(all)
}

// take takes a lease that was seen to be free; nil when somebody else was faster.
func (m *member) take(
	ctx context.Context, name string, seen *feedtype.LeaseStatus, above func(context.Context) (int64, error),
) (*Term, error) {
	if seen == nil {
		seen = &feedtype.LeaseStatus{Name: name, State: feedtype.LeaseFree}
	}
	l := &Lease{Above: above, store: m.g.store, Name: name, TTL: m.g.ttl, instance: m.instance}
	bounded, cancel := halfway(ctx, m.terms()...)
	defer cancel()
	return l.take(bounded, seen)
}

// takeJob takes a job.
func (m *member) takeJob(ctx context.Context, number int, seen *feedtype.LeaseStatus) (*Term, error) {
	var above func(context.Context) (int64, error)
	if m.g.Above != nil {
		above = func(ctx context.Context) (int64, error) { return m.g.Above(ctx, number) }
	}
	return m.take(ctx, JobLease(m.g.name, m.g.jobs, number), seen, above)
}

// sit takes a seat if there is a free one: any of the first few, so that those who come
// together do not all reach for the same. Without a seat a member has no share: jobs that
// it has left, after its seat was lost, go to others.
func (m *member) sit(ctx context.Context, l *groupLook) (bool, error) {
	m.seat = nil
	const some = 8
	for seats := free(l.seats, m.g.jobs); len(seats) > 0; {
		i := rand.N(min(some, len(seats)))
		name := seatLease(m.g.name, m.g.jobs, seats[i])
		t, err := m.take(ctx, name, l.seats[seats[i]], nil)
		if err != nil {
			return false, err
		}
		if t != nil {
			m.seat, m.standsBy = t, false
			return true, nil
		}
		seats = slices.Delete(seats, i, i+1)
	}
	m.giveAway(len(m.jobs))
	if !m.standsBy {
		m.standsBy = true
		m.g.store.Observer.Job(feedtype.JobEvent{Group: m.g.name, Jobs: m.g.jobs, Job: -1, Kind: feedtype.JobStandsBy})
	}
	return false, nil
}

// settle takes or gives away what the member has too little or too much. missing is what
// it has too little when it is done.
func (m *member) settle(ctx context.Context, l *groupLook) (took, missing int, err error) {
	share, place, members := l.share(m.g.jobs, m.instance)
	has := 0
	for _, j := range m.jobs {
		// One that does not come to an end is not waited for: another goes in its place.
		if j.term.ctx.Err() == nil && (!j.handsOver() || time.Since(j.asked) > m.g.ttl) {
			has++
		}
	}
	m.giveAway(has - share)
	if missing = share - has; missing <= 0 || members == 0 {
		return 0, missing, nil
	}
	jobs := free(l.Jobs, m.g.jobs)
	// Each member begins at another place.
	from := place * len(jobs) / members
	for _, number := range slices.Concat(jobs[from:], jobs[:from]) {
		if took == min(missing, takenAtOnce) {
			break
		}
		if m.jobs[number] != nil { // its term is lost, and its work has not come to an end
			continue
		}
		t, err := m.takeJob(ctx, number, l.Jobs[number])
		if err != nil {
			return took, missing - took, err
		}
		if t != nil {
			m.begin(number, t)
			took++
		}
	}
	return took, missing - took, nil
}

// giveAway asks so many jobs to come to an end that were not asked yet.
func (m *member) giveAway(n int) {
	for number := m.g.jobs - 1; number >= 0 && n > 0; number-- {
		if j := m.jobs[number]; j != nil && !j.handsOver() && j.term.ctx.Err() == nil {
			j.asked = time.Now()
			close(j.handOver)
			n--
		}
	}
}
