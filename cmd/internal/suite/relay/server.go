package relay

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestCopiedDatabaseIsNotReady (H15): a server on a database with another identity is not ready, whether it publishes
// or not, and says why. After the operator's decision it is ready.
func TestCopiedDatabaseIsNotReady(t *testing.T) {
	for mode, each := range map[string]func(*testing.T, func(*suite.Events)){
		rowfeed.ModeBlocking: suite.EachULID, rowfeed.ModeOutbox: suite.EachOutbox,
	} {
		t.Run(mode, func(t *testing.T) {
			each(t, func(x *suite.Events) {
				if !x.Has.Identity {
					return
				}
				for _, publish := range []bool{false, true} {
					ctx, stop := context.WithCancel(x.Ctx)
					address, ended := make(chan string, 1), make(chan error, 1)
					rf := x.TappedDB(testdb.Hooks{}, nil)
					go func() {
						ended <- server.Run(ctx, server.Config{DB: rf, Publish: publish, Listen: "127.0.0.1:0",
							VerifyEvery: 1, Ready: func(a string) { address <- a }})
					}()
					url := "http://" + <-address + "/readyz"
					ready := func(want int, words string) func() bool {
						return func() bool {
							resp, err := http.Get(url)
							if err != nil {
								x.Fatal(err)
							}
							defer resp.Body.Close()
							var body struct{ Reasons []string }
							if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
								x.Fatal(err)
							}
							return resp.StatusCode == want && strings.Contains(strings.Join(body.Reasons, "; "), words)
						}
					}
					x.Eventually("it is ready", ready(http.StatusOK, ""))
					x.Exec("UPDATE rowfeed_feeds SET database_identity = 'another'")
					x.Eventually("it is not ready elsewhere",
						ready(http.StatusServiceUnavailable, "rowfeed feed bump events"))
					if _, err := x.Feed.Admin().AdoptDatabase(x.Ctx); err != nil {
						x.Fatal(err)
					}
					x.Eventually("it is ready again", ready(http.StatusOK, ""))
					stop()
					if err := <-ended; err != nil {
						x.Error(err)
					}
					http.DefaultClient.CloseIdleConnections()
				}
			})
		})
	}
}
