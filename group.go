package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/internal/lease"
)

// Group shares a number of jobs among all who run it, in any number of processes: each
// job is done by one of them at a time, under a lease of its own, and the numbers of jobs
// of any two differ by one at most within three terms of whatever happened to them. More
// of them than jobs stand by.
//
// What a lease guards it guards here; see Lease and Job.Term.
type Group struct{ group *lease.Group }

// Group names a group; nothing is asked of the database yet. Its leases begin with name,
// 1 to 83 printable ASCII characters without blanks, and the number of jobs: groups of
// different numbers have nothing in common. ttl is a lease's: one who was killed is
// replaced that much later, at most.
func (db *DB) Group(name string, jobs int, ttl time.Duration) *Group {
	return &Group{lease.NewGroup(db.store, name, jobs, ttl)}
}

// Run does its share of the jobs, each in a goroutine of its own, until ctx ends, then
// answers nil. do does a job until its context ends, which it does with ctx or when the
// job's term is lost, or until Job.HandOver says that somebody else is to have it. One
// that returns otherwise is done again, here or elsewhere. Its error ends Run with that
// error, unless the term was lost. Run outlives databases that go away, without one its
// terms run out, and it returns when every do has.
func (g *Group) Run(ctx context.Context, do func(ctx context.Context, j *Job) error) error {
	return g.group.Run(ctx, func(ctx context.Context, j *lease.Job) error { return do(ctx, &Job{j}) })
}

// Job is one of a group's while this member of it has it.
type Job struct{ job *lease.Job }

// Number is from 0 to the number of jobs, exclusively.
func (j *Job) Number() int { return j.job.Number() }

// Term is that of the job's lease.
func (j *Job) Term() *Term { return &Term{j.job.Term()} }

// HandOver is closed when somebody else is to have the job: whoever does it finishes what
// is in hand and returns. The job stays its own until then.
func (j *Job) HandOver() <-chan struct{} { return j.job.HandOver() }
