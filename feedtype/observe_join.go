package feedtype

// Observers returns one Observer that calls several, in their order. It leaves out those that are nil.
func Observers(all ...*Observer) *Observer {
	each := &Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		each.Published = both(each.Published, o.Published)
		each.Skipped = both(each.Skipped, o.Skipped)
		each.Fetched = both(each.Fetched, o.Fetched)
		each.Retried = both(each.Retried, o.Retried)
		each.Consumed = both(each.Consumed, o.Consumed)
		each.SetAside = both(each.SetAside, o.SetAside)
		each.Claim = both(each.Claim, o.Claim)
		each.Lease = both(each.Lease, o.Lease)
		each.Job = both(each.Job, o.Job)
		each.Trouble = both(each.Trouble, o.Trouble)
		each.Recovered = both(each.Recovered, o.Recovered)
	}
	return each
}

// ignored has an empty function for every event but Skipped, whose rows are counted only if an Observer asks for them.
var ignored = &Observer{
	Published: func(PublishEvent) {},
	Fetched:   func(FetchEvent) {},
	Retried:   func(RetryEvent) {},
	Consumed:  func(ConsumeEvent) {},
	SetAside:  func(SetAsideEvent) {},
	Claim:     func(ClaimEvent) {},
	Lease:     func(LeaseEvent) {},
	Job:       func(JobEvent) {},
	Trouble:   func(TroubleEvent) {},
	Recovered: func(RecoveredEvent) {},
}

// WithDefaults returns an Observer whose functions can all be called, except for Skipped, which may be nil. o may be
// nil.
func (o *Observer) WithDefaults() *Observer { return Observers(o, ignored) }

// both calls first and then second. If one is nil it returns the other, so that an event without an Observer stays
// nil.
func both[E any](first, second func(E)) func(E) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(e E) {
		first(e)
		second(e)
	}
}
