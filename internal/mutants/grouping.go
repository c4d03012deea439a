package main

// grouping takes away what groups rest on.
var grouping = []mutant{
	{
		Name: "group-hands-over-at-once", Guards: "M24: a job changes hands when what is in hand has come to an end",
		File: "group_share.go", Old: "			close(j.handOver)", New: "			close(j.handOver)\n			_ = j.term.letGo(m.ctx)",
		Package: conformance, Test: "TestGroupRebalanceWaits", Engines: "sqlite",
	},
	{
		Name: "group-keeps-what-it-has", Guards: "M24: who has too many hands over",
		File: "group_share.go", Old: "	m.giveAway(has - share)", New: "	m.giveAway(0)",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-newcomers-first", Guards: "M24: no more jobs change hands than must",
		File: "group_share.go", Old: "			return b.has - a.has", New: "			return a.has - b.has",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-takes-more-than-its-share", Guards: "M24: a quiet group moves nothing",
		File: "group_share.go", Old: "missing = share - has; missing", New: "missing = share + 1 - has; missing",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-waits-for-the-hung", Guards: "a job that does not come to an end holds up itself only",
		File: "group_share.go", Old: " || time.Since(j.asked) > m.g.ttl)", New: ")",
		Package: conformance, Test: "TestGroupRebalanceWaits", Engines: "sqlite",
	},
	{
		Name: "group-does-a-job-twice", Guards: "M54: a job is not begun again beside its own work",
		File: "group_share.go", Old: "		if m.jobs[number] != nil {", New: "		if m.jobs[number] != nil && number < 0 {",
		Package: conformance, Test: "TestGroupLostLease", Engines: "sqlite",
	},
	{
		Name: "group-renewals-unchecked", Guards: "M54: a job ends when a renewal finds its term lost",
		File: "group.go", Old: "			if n == int64(len(some)) {", New: "			if n >= 0 {",
		Package: conformance, Test: "TestGroupLostLease", Engines: "sqlite", Short: true,
	},
	{
		Name: "group-outlives-its-terms", Guards: "M54: who cannot renew stops",
		File: "group.go", Old: "		if t := m.jobs[number].term; t.ctx.Err() == nil {", New: "		if t := m.jobs[number].term; t.ctx.Err() == nil && t.extend(time.Now()) == nil {",
		Package: conformance, Test: "TestGroupThroughOutage", Engines: "sqlite",
	},
	{
		Name: "group-leaves-its-seat", Guards: "who leaves makes nobody wait",
		File: "group.go", Old: "		_ = m.seat.letGo(m.ctx)", New: "		_ = m.seat",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-leaves-its-jobs", Guards: "who leaves makes nobody wait",
		File: "group.go", Old: "		_ = t.letGo(m.ctx)", New: "		_ = t",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-asks-on", Guards: "M53: no busy loop while others do not hand over",
		File: "group.go", Old: "	m.hungry++", New: "	m.hungry = 1",
		Package: conformance, Test: "TestGroupHungHandler", Engines: "sqlite",
	},
	{
		Name: "group-beats-faster", Guards: "M53: what an idle group costs",
		File: "group.go", Old: "	wait := m.g.ttl/4 + ", New: "	wait := m.g.ttl/8 + ",
		Package: conformance, Test: "TestGroupIdleCost", Engines: "sqlite", Short: true,
	},
}
