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
	"github.com/rowfeed/rowfeed/internal/store"
)

// groupState has the rows of a group's leases at one moment, held or not.
type groupState struct {
	asked       time.Time // a moment before they were read
	seats, Jobs map[int]*feedtype.LeaseStatus
	rows        map[string]*feedtype.LeaseStatus // seats and jobs by the names of their leases
}

// Read reads the group's leases by one statement.
func (g *Group) Read(ctx context.Context) (*groupState, error) {
	prefix := GroupPrefix(g.name, g.jobs)
	asked := time.Now()
	rows, err := store.All(ctx, g.store, g.store.On(), statements, "group",
		dialect.Args{"first": prefix, "beyond": strings.TrimSuffix(prefix, "/") + "0"}, scan) // '0' follows '/'
	if err != nil {
		return nil, err
	}
	l := &groupState{asked: asked, seats: map[int]*feedtype.LeaseStatus{}, Jobs: map[int]*feedtype.LeaseStatus{},
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

// confirm ends the claims that no longer hold, and extends the others to the end that their rows say.
func (l *groupState) confirm(claims []*Claim) {
	for _, c := range claims {
		row := l.rows[c.lease.Name]
		if row == nil || row.Owner != c.owner || row.Epoch != c.epoch || !Held(row) {
			c.lose(lostToOthers)
			continue
		}
		left := time.Duration(row.ExpiresInSeconds * float64(time.Second))
		_ = c.extend(l.asked.Add(left - c.lease.TTL))
	}
}

// free lists which of n leases no member holds.
func free(rows map[int]*feedtype.LeaseStatus, n int) (numbers []int) {
	for i := range n {
		if s := rows[i]; s == nil || !Held(s) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// instanceOf is the part of a lease's owner that all claims of a group's member share.
func instanceOf(owner string) string { return owner[:max(0, strings.LastIndexByte(owner, '/'))] }

// share is the number of jobs that a member is to have, and its rank among the members with a seat. Members with more
// jobs rank first, so that as few jobs as possible move, and then those with a lower seat. All members that read the
// same rows compute the same shares.
func (l *groupState) share(jobs int, instance string) (share, rank, members int) {
	type seated struct {
		instance  string
		has, seat int
	}
	var all []seated
	of := func(owner string) int {
		return slices.IndexFunc(all, func(s seated) bool { return s.instance == instanceOf(owner) })
	}
	for _, seat := range slices.Sorted(maps.Keys(l.seats)) {
		// A member that lost its seat and acquired another holds two until the first one expires.
		if s := l.seats[seat]; Held(s) && of(s.Owner) < 0 {
			all = append(all, seated{instance: instanceOf(s.Owner), seat: seat})
		}
	}
	for _, s := range l.Jobs {
		if i := of(s.Owner); Held(s) && i >= 0 {
			all[i].has++
		}
	}
	slices.SortFunc(all, func(a, b seated) int {
		if a.has != b.has {
			return b.has - a.has
		}
		return a.seat - b.seat
	})
	rank = slices.IndexFunc(all, func(s seated) bool { return s.instance == instance })
	if rank < 0 {
		return 0, 0, len(all)
	}
	share = jobs / len(all)
	if rank < jobs%len(all) {
		share++
	}
	return share, rank, len(all)
}

// acquire acquires a lease that was read as free. It returns nil if another member was faster.
func (m *member) acquire(ctx context.Context, name string, seen *feedtype.LeaseStatus,
	above func(context.Context) (int64, error),
) (*Claim, error) {
	if seen == nil {
		seen = &feedtype.LeaseStatus{Name: name, State: feedtype.LeaseFree}
	}
	l := &Lease{Above: above, store: m.g.store, Name: name, TTL: m.g.ttl, instance: m.instance}
	bounded, cancel := halfway(ctx, m.claims()...)
	defer cancel()
	return l.acquire(bounded, seen)
}

func (m *member) acquireJob(ctx context.Context, number int, seen *feedtype.LeaseStatus) (*Claim, error) {
	var above func(context.Context) (int64, error)
	if m.g.Above != nil {
		above = func(ctx context.Context) (int64, error) { return m.g.Above(ctx, number) }
	}
	return m.acquire(ctx, JobLease(m.g.name, m.g.jobs, number), seen, above)
}

// takeSeat acquires one of the first few free seats at random, since members that start together compete for them. A
// member without a seat has no share, so it hands over any jobs that it still has.
func (m *member) takeSeat(ctx context.Context, l *groupState) (bool, error) {
	m.seat = nil
	const some = 8
	for seats := free(l.seats, m.g.jobs); len(seats) > 0; {
		i := rand.N(min(some, len(seats)))
		name := seatLease(m.g.name, m.g.jobs, seats[i])
		c, err := m.acquire(ctx, name, l.seats[seats[i]], nil)
		if err != nil {
			return false, err
		}
		if c != nil {
			m.seat, m.standsBy = c, false
			return true, nil
		}
		seats = slices.Delete(seats, i, i+1)
	}
	m.handOver(len(m.jobs))
	if !m.standsBy {
		m.standsBy = true
		m.g.store.Observer.Job(feedtype.JobEvent{Group: m.g.name, Jobs: m.g.jobs, Job: -1,
			Kind: feedtype.JobStandsBy})
	}
	return false, nil
}

// rebalance acquires jobs that the member lacks, or hands over those beyond its share. Missing is how many it still
// lacks.
func (m *member) rebalance(ctx context.Context, l *groupState) (took, missing int, err error) {
	share, rank, members := l.share(m.g.jobs, m.instance)
	has := 0
	for _, j := range m.jobs {
		// If work does not return within the ttl after the request, another job is handed over instead.
		if j.claim.ctx.Err() == nil && (!j.handsOver() || time.Since(j.asked) > m.g.ttl) {
			has++
		}
	}
	m.handOver(has - share)
	if missing = share - has; missing <= 0 || members == 0 {
		return 0, missing, nil
	}
	jobs := free(l.Jobs, m.g.jobs)
	// Each member begins at a different job.
	from := rank * len(jobs) / members
	for _, number := range slices.Concat(jobs[from:], jobs[:from]) {
		if took == min(missing, maxTakenAtOnce) {
			break
		}
		if m.jobs[number] != nil { // its claim is lost, and its work has not returned
			continue
		}
		c, err := m.acquireJob(ctx, number, l.Jobs[number])
		if err != nil {
			return took, missing - took, err
		}
		if c != nil {
			m.start(number, c)
			took++
		}
	}
	return took, missing - took, nil
}

// handOver asks for n more jobs to be handed over, the highest numbers first.
func (m *member) handOver(n int) {
	for number := m.g.jobs - 1; number >= 0 && n > 0; number-- {
		if j := m.jobs[number]; j != nil && !j.handsOver() && j.claim.ctx.Err() == nil {
			j.asked = time.Now()
			close(j.handOver)
			n--
		}
	}
}
