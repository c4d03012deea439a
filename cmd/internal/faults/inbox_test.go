package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// send posts entries, written as "position shard key version" ("-" for a delete).
func send(ctx context.Context, url string, epoch int, entries ...string) (status int, err error) {
	var all []string
	for _, text := range entries {
		var position, version string
		var shard, key int
		if _, err := fmt.Sscan(text, &position, &shard, &key, &version); err != nil {
			return 0, err
		}
		e := fmt.Sprintf(`{"position":%q,"shard":%d,"op":"upsert","key":{"id":%d},"row":{"id":%d,"v":%s}}`,
			position, shard, key, key, version)
		if version == "-" {
			e = fmt.Sprintf(`{"position":%q,"shard":%d,"op":"delete","key":{"id":%d}}`, position, shard, key)
		}
		all = append(all, e)
	}
	body := fmt.Sprintf(
		`{"type":"rowfeed.entries","data":{"feed":"kv","generation":1,"epoch":%d,"entries":[%s],"base64":[]}}`, epoch,
		strings.Join(all, ","),
	)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// TestInboxRefusesOldEpochsAndPositions: what the receiver accepts, and what it refuses.
func TestInboxRefusesOldEpochsAndPositions(t *testing.T) {
	b := NewInbox("id", "v")
	s := httptest.NewServer(b)
	defer s.Close()
	must := func(want, epoch int, entries ...string) {
		t.Helper()
		if got, err := send(t.Context(), s.URL+"/hook/0/1", epoch, entries...); err != nil || want != 0 && got != want {
			t.Fatalf("%d, %v", got, err)
		}
	}
	must(200, 1, "1 0 7 1", "2 1 8 1")
	must(200, 1, "2 1 8 1", "3 0 7 2")
	must(200, 2, "3 0 7 2", "4 0 7 -")
	must(0, 1, "5 0 7 9") // status 200, 409 or 410
	must(200, 1, "6 1 8 2")
	b.SetMood(func() (bool, time.Duration) { return true, 0 })
	must(503, 2, "7 0 7 5")
	b.SetMood(nil)
	log, err := b.Log()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range log {
		got = append(got, fmt.Sprintf("%d %v", a.Position, a.Answer))
		if a.Sender != "0/1" || a.Fate != Awaited {
			t.Errorf("%+v", a)
		}
	}
	want := "1 accepted, 2 accepted, 2 repeated, 3 accepted, 3 repeated, 4 accepted, 5 superseded, 6 accepted, 7 busy"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
	if rows := b.Rows(); !reflect.DeepEqual(rows, map[int64]int64{8: 2}) {
		t.Errorf("rows %v", rows)
	}
}

// observed is an inbox that reports when it has answered a request.
type observed struct {
	*Inbox
	*httptest.Server
	answered chan struct{}
}

func observe(t *testing.T) *observed {
	o := &observed{Inbox: NewInbox("id", "v"), answered: make(chan struct{}, 10)}
	o.Patience = time.Hour // a request is held until its connection is cut
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.ServeHTTP(w, r)
		o.answered <- struct{}{}
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *observed) written() []Arrival {
	log, _ := o.Log()
	return log
}

// held sends an entry whose request is held. The function that it returns cuts the connection.
func (o *observed) held(t *testing.T, entry string) (cut func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	before := len(o.written())
	go func() {
		_, err := send(ctx, o.URL, 1, entry)
		ended <- err
	}()
	for len(o.written()) == before {
		<-time.After(time.Millisecond)
	}
	return func() {
		cancel()
		if err := <-ended; err == nil {
			t.Error("a request out of order was answered")
		}
		<-o.answered
	}
}

// inOrder sends an entry that is answered at once.
func (o *observed) inOrder(t *testing.T, entry string) {
	t.Helper()
	if _, err := send(t.Context(), o.URL, 1, entry); err != nil {
		t.Fatal(err)
	}
	<-o.answered
}

// TestInboxKnowsWhichRequestsWereGivenUp: the sender of a request out of order has given it up, or has made an error.
// It has given it up if it sends the next request. If the connection ends and no other request has arrived, nothing is
// known.
func TestInboxKnowsWhichRequestsWereGivenUp(t *testing.T) {
	for i, entry := range []string{"1 0 7 1", "1 0 8 1"} { // of the same key, or another
		for _, want := range []Fate{Awaited, GivenUp, Unknown} {
			o := observe(t)
			o.inOrder(t, "2 0 7 2")
			if want == Awaited {
				o.Patience = 0
				o.inOrder(t, entry)
			} else {
				cut := o.held(t, entry)
				if want == GivenUp {
					o.inOrder(t, "3 0 9 1")
				} else if _, err := send(t.Context(), o.URL, 2, "3 0 9 1"); err != nil { // of another claim
					t.Fatal(err)
				} else {
					<-o.answered
				}
				cut()
			}
			if log := o.written(); log[1].Answer != []Answer{Repeated, Accepted}[i] || log[1].Fate != want {
				t.Errorf("%s, want %d: %+v", entry, want, log)
			}
		}
	}
}

// TestReorderingSenderIsFound: a sender that sends a later entry first is detected, whether its requests are answered
// or repeatedly cut.
func TestReorderingSenderIsFound(t *testing.T) {
	history, final := History{7: {{Version: 1}}, 8: {{Version: 1}}}, map[int64]int64{7: 1, 8: 1}
	for _, cuts := range []int{0, 1, maxUnknown + 1} {
		o := observe(t)
		o.inOrder(t, "2 0 8 1")
		for range cuts {
			o.held(t, "1 0 7 1")()
		}
		if cuts <= maxUnknown { // its sender waits for the answer
			o.Patience = 0
			o.inOrder(t, "1 0 7 1")
		}
		v := Check(o.written(), same, history, final)
		if len(v.Faults) != 1 || !strings.HasPrefix(v.Faults[0], "order: ") || v.Unknown != cuts {
			t.Errorf("%d cuts: %+v", cuts, v)
		}
	}
}

// TestInvalidRequestsAreErrors: a request that no relay may send is an error of the campaign.
func TestInvalidRequestsAreErrors(t *testing.T) {
	b := NewInbox("id", "v")
	s := httptest.NewServer(b)
	defer s.Close()
	for _, entries := range [][]string{{}, {"one 0 7 1"}, {`1 0 7 "x"`}} {
		b.wrong = nil
		if status, err := send(t.Context(), s.URL, 1, entries...); err != nil ||
			status != http.StatusInternalServerError {
			t.Errorf("%v: %d, %v", entries, status, err)
		}
		if log, err := b.Log(); err == nil || len(log) > 0 {
			t.Errorf("%v: taken in", entries)
		}
	}
}
