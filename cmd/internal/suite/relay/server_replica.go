package relay

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestUndeclaredReplicaIsReported (H26): a server on a replica that was not declared as one reports that, and neither
// publishes nor refuses a cursor for good. Nothing is written there, even by a user who could write.
func TestUndeclaredReplicaIsReported(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		y, there := x.On(rowfeed.Config{})
		x.Fill(2)
		x.Publish(x.Feed)
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)") // is not published yet
		x.Eventually("the replica has the change", func() bool {
			return y.Scalar("SELECT count(*) FROM rowfeed_changes_kv") == 1
		})
		told := func(err error) {
			x.Helper()
			x.WantCode(err, rowfeed.ReadOnly)
			if !strings.Contains(err.Error(), "--replica") {
				x.Errorf("no next step in %v", err)
			}
		}
		ctx, stop := context.WithCancel(x.Ctx)
		reasons, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- server.Run(ctx, server.Config{DB: y.RF, Publish: true, Listen: "127.0.0.1:0",
				Ready: func(a string) { reasons <- "http://" + a + "/readyz" }})
		}()
		at := <-reasons
		x.Eventually("a server that is to publish is not ready there, and says why", func() bool {
			resp, err := http.Get(at)
			if err != nil {
				x.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return err == nil && resp.StatusCode == http.StatusServiceUnavailable &&
				strings.Contains(string(body), "connect to the primary")
		})
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		_, err := there.Publish(x.Ctx)
		told(err)
		_, err = there.Fetch(x.Ctx, rowfeed.Request{After: "3"})
		told(err)
		_, err = there.Admin().Bump(x.Ctx)
		told(err)
		_, err = there.Admin().AdoptDatabase(x.Ctx)
		told(err)
		if n := y.Scalar("SELECT count(*) FROM rowfeed_changes_kv"); n != 1 {
			x.Errorf("%d changes on the replica", n)
		}
		running := y.RunPublisher()
		x.Eventually("the publisher tells", func() bool {
			return slices.ContainsFunc(running.Feed.Problems(),
				func(p string) bool { return strings.Contains(p, "--replica") })
		})
		_, declared := x.On(rowfeed.Config{Replica: true})
		_, err = declared.Publish(x.Ctx)
		told(err)
		_, err = declared.Fetch(x.Ctx, rowfeed.Request{Consistent: true})
		x.WantCode(err, rowfeed.InvalidRequest)
		// TestFailover shows that a publisher continues on a replica that becomes the primary.
	})
}
