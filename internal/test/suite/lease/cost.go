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

// TestRenewalSendsFewStatements: a renewal is what an idle process sends besides its polls. Servers count and log each
// statement of a message.
func TestRenewalSendsFewStatements(t *testing.T) {
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
		if len(sent) > 6 { // the renewal, BEGIN, COMMIT, and the settings of rowfeed's transactions
			x.Errorf("%d statements: %q", len(sent), sent)
		}
	})
}
