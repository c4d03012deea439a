package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/internal/lease"
)

// Group shares a number of jobs among its members, in any number of processes. One member at a time does a job, under a
// lease of its own. After a member has come or gone, the numbers of jobs of any two members differ by one at most
// within three times the ttl. If there are more members than jobs, some stand by. See Lease and Job.Claim for what is
// guarded.
type Group struct{ group *lease.Group }

// Group names a group, and does not ask the database yet. The names of its leases begin with name, 1 to 83 printable
// ASCII characters without blanks, and the number of jobs: groups with different numbers of jobs are different groups.
// ttl is that of the leases: a member that was killed is replaced that much later, at most.
func (db *DB) Group(name string, jobs int, ttl time.Duration) *Group {
	return &Group{lease.NewGroup(db.store, name, jobs, ttl)}
}

// Run makes this process a member until ctx ends, and then answers nil. It calls do for each job of the member, in a
// goroutine of its own. do works until its context ends (with ctx, or when the job's claim is lost) or until
// Job.HandOver is closed. A job whose do returned otherwise is done again, by this or another member. An error of do
// ends Run with that error, unless the claim was lost. Run survives the loss of its database, without which its claims
// end. It returns when every do has.
func (g *Group) Run(ctx context.Context, do func(ctx context.Context, j *Job) error) error {
	return g.group.Run(ctx, func(ctx context.Context, j *lease.Job) error { return do(ctx, &Job{j}) })
}

// Job is a job of a group while this member does it.
type Job struct{ job *lease.Job }

// Number is from 0 to the number of jobs, exclusively.
func (j *Job) Number() int { return j.job.Number() }

// Claim is that of the job's lease.
func (j *Job) Claim() *Claim { return &Claim{j.job.Claim()} }

// HandOver is closed when another member is to do the job. do then finishes what it has begun, and returns. The job
// stays this member's until then.
func (j *Job) HandOver() <-chan struct{} { return j.job.HandOver() }
