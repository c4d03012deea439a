package console

import (
	"strconv"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// maxAudit is the maximum number of acts on a page.
const maxAudit = 100

type auditView struct {
	Acts  []admin.Act
	Older int64 // the next page has the acts before this id; 0 if this page is the last
	Later bool  // newer acts exist
}

type auditPage struct{ data Lists }

func (p auditPage) show(q *request) (*answer, error) {
	if !q.who.May(access.Administer, access.EveryFeed) {
		return nil, forbidden(access.Administer, access.EveryFeed)
	}
	before, _ := strconv.ParseInt(q.URL.Query().Get("before"), 10, 64) // 0, if it is not a number, is the newest page
	all, err := p.data.Acts(q.Context(), before, maxAudit)
	v := auditView{Acts: all, Later: before > 0}
	if len(all) == maxAudit {
		v.Older = all[len(all)-1].ID
	}
	return &answer{template: "audit", title: "Audit log", nav: "audit", content: v}, err
}
