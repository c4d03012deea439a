package lease

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRenewalStatements: a renewal is what a process at rest sends besides its looks. Servers count, and
// log, each statement of a message.
func TestRenewalStatements(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var mu sync.Mutex
		var sent []string
		rf := stranger(x, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			mu.Lock()
			defer mu.Unlock()
			if sent = append(sent, "(begin or end)"); ev.SQL != "" {
				sent = append(sent[:len(sent)-1], strings.Split(ev.SQL, "; ")...)
			}
			return nil
		}})
		claim, err := rf.Lease("job", time.Hour).TryAcquire(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		mu.Lock()
		sent = nil
		mu.Unlock()
		if err := claim.Renew(x.Ctx); err != nil {
			x.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sent) > 6 { // the renewal, BEGIN, COMMIT, and what makes the transaction rowfeed's
			x.Errorf("%d statements: %q", len(sent), sent)
		}
	})
}
