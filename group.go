package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/internal/lease"
)

// Group shares a number of jobs among its members, in any number of processes. One member at a time does a job, under
// a lease for that job. After a member has joined or left, the jobs are balanced within three times the ttl: the
// numbers of jobs of any two members then differ by at most one. If there are more members than jobs, some stand by.
// Lease and Job.Claim describe what is guarded.
type Group struct{ group *lease.Group }

// Group returns a group, without asking the database. The names of the group's leases begin with name and the number
// of jobs. A name has 1 to 83 printable ASCII characters without blanks. Groups with different numbers of jobs are
// different groups. ttl is the time to live of the leases: a member that was killed is replaced after at most that
// time.
func (db *DB) Group(name string, jobs int, ttl time.Duration) *Group {
	return &Group{lease.NewGroup(db.store, name, jobs, ttl)}
}

// Run makes this process a member until ctx ends, and then returns nil. It calls do for each job of the member, in a
// goroutine of its own. do works until its context ends (with ctx, or when the job's claim is lost) or until
// Job.HandOver is closed. If do returns for another reason, this or another member starts the job again. An error of
// do ends Run with that error, unless the claim was lost. Run survives the loss of its database, but its claims end
// meanwhile. It returns when every do has returned.
func (g *Group) Run(ctx context.Context, do func(ctx context.Context, j *Job) error) error {
	return g.group.Run(ctx, func(ctx context.Context, j *lease.Job) error { return do(ctx, &Job{j}) })
}

// Job is a job of a group while this member does it.
type Job struct{ job *lease.Job }

// Number returns the number of the job, from 0 to the number of jobs minus one.
func (j *Job) Number() int { return j.job.Number() }

// Claim returns the claim on the job's lease.
func (j *Job) Claim() *Claim { return &Claim{j.job.Claim()} }

// HandOver returns a channel that is closed when another member is to take over the job. do then finishes its current
// work, and returns. The job belongs to this member until then.
func (j *Job) HandOver() <-chan struct{} { return j.job.HandOver() }
