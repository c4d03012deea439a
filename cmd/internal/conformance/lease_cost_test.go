package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRenewalStatements: a renewal is what a process at rest sends besides its looks. Servers count, and
// log, each statement of a message.
func TestRenewalStatements(t *testing.T) {
	each(t, func(x *env) {
		var mu sync.Mutex
		var sent []string
		rf := x.stranger(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			mu.Lock()
			defer mu.Unlock()
			if sent = append(sent, "(begin or end)"); ev.SQL != "" {
				sent = append(sent[:len(sent)-1], strings.Split(ev.SQL, "; ")...)
			}
			return nil
		}})
		term, err := rf.Lease("job", time.Hour).TryAcquire(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		mu.Lock()
		sent = nil
		mu.Unlock()
		if err := term.Renew(x.ctx); err != nil {
			x.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sent) > 6 { // the renewal, BEGIN, COMMIT, and what makes the transaction rowfeed's
			x.Errorf("%d statements: %q", len(sent), sent)
		}
	})
}
