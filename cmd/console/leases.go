package console

import (
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
)

type leasesView struct {
	Leases    []leaseView
	Instances []instanceView
}

type leaseView struct {
	*rowfeed.LeaseStatus
	For        string // the purpose, for the page
	MayRelease bool
}

// instanceView is a process that holds leases.
type instanceView struct {
	Host, Process string
	Jobs          []string // names of its leases
}

type leasesPage struct{ data Lists }

func (p leasesPage) show(q *request) (*answer, error) {
	all, err := p.data.CurrentLeases(q.Context())
	if err != nil {
		return nil, err
	}
	var v leasesView
	for _, l := range all {
		feed := leaseFeed(l.Name)
		if !maySee(q.who, feed) {
			continue
		}
		v.Leases = append(v.Leases,
			leaseView{l, purpose(l.Name, feed), l.State != rowfeed.LeaseFree && q.who.May(access.Administer, feed)})
		if l.State != rowfeed.LeaseHeld {
			continue
		}
		host, pid, _ := strings.Cut(process(l.Owner), "/")
		i := slices.IndexFunc(v.Instances, func(x instanceView) bool { return x.Host == host && x.Process == pid })
		if i < 0 {
			i = len(v.Instances)
			v.Instances = append(v.Instances, instanceView{Host: host, Process: pid})
		}
		v.Instances[i].Jobs = append(v.Instances[i].Jobs, l.Name)
	}
	return &answer{template: "leases", title: "Leases", nav: "leases", content: v}, nil
}

// purpose describes the job of a lease.
func purpose(name, feed string) string {
	kind, rest, _ := strings.Cut(name, ":")
	rest = strings.TrimPrefix(rest, feed+":")
	switch {
	case feed == access.EveryFeed:
		return "a lease of your application"
	case kind == "publish":
		return "publishing feed " + feed
	case kind == "relay":
		return "relay " + rest + " of feed " + feed
	}
	if consumer, seat, ok := strings.Cut(rest, "/"); ok && strings.Contains(seat, "seat/") {
		return "an instance of consumer " + consumer
	} else if count, shard, split := strings.Cut(seat, "/"); ok && split {
		return "consumer " + consumer + ", shard " + shard + " of " + count
	}
	return "consumer " + rest + " of feed " + feed
}
